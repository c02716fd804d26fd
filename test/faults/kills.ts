import type { Family } from './family.ts'
import { makeHome, startAt } from './server.ts'

export const kills: Family = {
  name: 'kills',
  about: 'kill -9 under load',
  counts: { kills: { full: 100, short: 5 } },
  async run(trial) {
    const server = await startAt(makeHome(trial, 'home'))
    const broken = (await server.stop('SIGKILL')) === 137 ? [] : ['it did not end']
    trial.report({ tried: 'a kill', promised: 'it ends', figures: { kills: 1 }, broken })
  },
}
