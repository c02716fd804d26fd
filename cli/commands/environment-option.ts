import { Option } from 'commander'

const environments = ['live', 'test'] as const
export type Environment = (typeof environments)[number]

/** Creates the option that filters by environment. @param what for example `only codes of` */
export const environmentOption = (what: string) =>
  new Option('-e, --env <environment>', `${what} live or test applications`).choices(environments)
