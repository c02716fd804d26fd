import { credentialRaces } from './credentials.ts'
import { identityRaces } from './identities.ts'
import { limitRaces } from './limits.ts'
import { otpRaces } from './otp.ts'

export const races = [...otpRaces, ...identityRaces, ...limitRaces, ...credentialRaces]
