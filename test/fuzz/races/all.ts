import { alertRaces } from './alerts.ts'
import { auditRaces } from './audit.ts'
import { credentialRaces } from './credentials.ts'
import { facadeRaces } from './facades.ts'
import { guardRuleRaces } from './guard-rules.ts'
import { guardBackfillRaces } from './guard-backfills.ts'
import { identityRaces } from './identities.ts'
import { limitRaces } from './limits.ts'
import { otpRaces } from './otp.ts'
import { phoneRaces } from './phones.ts'
import { relayOutcomeRaces } from './relay-outcomes.ts'
import { sessionRaces } from './sessions.ts'
import { templateRaces } from './templates.ts'
import { tokenRaces } from './tokens.ts'

export const races = [
  ...otpRaces,
  ...facadeRaces,
  ...identityRaces,
  ...limitRaces,
  ...phoneRaces,
  ...credentialRaces,
  ...tokenRaces,
  ...templateRaces,
  ...guardRuleRaces,
  ...guardBackfillRaces,
  ...relayOutcomeRaces,
  ...sessionRaces,
  ...auditRaces,
  ...alertRaces,
]
