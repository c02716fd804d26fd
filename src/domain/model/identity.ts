import type { PhoneIdentity } from './phone-record.ts'
import type { Environment } from '../../shared/otp-values.ts'

/** A phone number whose possession was verified. One per developer, environment and phone. */
export type Identity = PhoneIdentity & {
  developerId: string
  environment: Environment
  phone: string
  country: string | null
}
