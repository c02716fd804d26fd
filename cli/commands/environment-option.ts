import { Option } from 'commander'
import { environments } from '../../src/shared/otp-values.ts'

/** Creates the option that filters by environment. @param what for example `only codes of` */
export const environmentOption = (what: string) =>
  new Option('-e, --env <environment>', `${what} live or test applications`).choices(environments)
