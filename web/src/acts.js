// What a user may do with a job, in the words of the command line: package draft has those of updates.

// jobVerbs are what may be asked for of a job, as starling can names it.
export const jobVerbs = ['run', 'stop', 'restart', 'suspend', 'rollback', 'steer-update']

// lower begins a sentence of the command line within another.
const lower = (words) => words[0].toLowerCase() + words.slice(1)

const steerings = {
  pause: 'Begin nothing more of an update; what is under way ends',
  resume: 'Go on with an update that is paused',
  promote: 'Let the canaries take their places and the rest follow',
  fail: 'End an update as a failure of its own would: with a rollback if the job asks for one',
  abort: 'End an update and leave the instances as they are',
}

// steeringsOf are those that an update takes as it stands.
export function steeringsOf(update) {
  if (!update || update.final) return []
  const all = [update.state === 'PAUSED' ? 'resume' : 'pause', 'promote', 'fail', 'abort']
  return update.promoted ? all.filter((one) => one !== 'promote') : all
}

const capital = (word) => word[0].toUpperCase() + word.slice(1)

// steer asks for one of them.
export const steer = (job, how) => ({
  procedure: 'SteerUpdate',
  verb: capital(how),
  question: `${capital(how)} the update of ${job.name} to version ${job.update.to}: ${lower(steerings[how])}`,
  request: {job: job.name, version: job.update.to, steering: how},
})

export const stop = (job) => ({
  procedure: 'KillJob',
  verb: 'Stop',
  question: `Stop ${job.name} for good: all its instances end`,
  request: {job: job.name, against: job.version},
})

export const restart = (job) => ({
  procedure: 'RestartJob',
  verb: 'Restart',
  question: `Restart ${job.name}: its instances are replaced by new ones, as in an update`,
  request: {job: job.name, against: job.version},
})

// suspend ends what runs of a job for now, or lets it go on.
export const suspend = (job) =>
  job.status === 'suspended'
    ? {
        procedure: 'SuspendJob',
        verb: 'Resume',
        question: `Resume ${job.name}: ${lower('Let a suspended job go on')}`,
        request: {job: job.name, against: job.version, resume: true},
      }
    : {
        procedure: 'SuspendJob',
        verb: 'Suspend',
        question: `Suspend ${job.name}: ${lower('End all instances of a job, and start none until it is resumed')}`,
        request: {job: job.name, against: job.version},
      }

export const revert = (job, to) => ({
  procedure: 'RevertJob',
  verb: 'Revert',
  question: `Revert ${job.name} to version ${to}: ${lower('Go back to an earlier version of a job')}`,
  request: {job: job.name, against: job.version, to},
})
