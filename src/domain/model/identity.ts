import type { PhoneIdentity } from './phone-record.ts'

/** A phone number whose possession was verified. One per developer, environment and phone. */
export type Identity = PhoneIdentity & {
  developerId: string
  environment: 'live' | 'test'
  phone: string
  country: string | null
}
