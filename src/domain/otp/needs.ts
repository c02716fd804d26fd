import type { Store } from '../store/store.ts'
import type { Clock } from '../model/clock.ts'
import type { NewId } from '../model/ids.ts'
import type { Keys } from '../model/keys.ts'
import type { Plans } from '../model/plans.ts'
import type { Delivery } from '../model/delivery.ts'
import type { MessageAttempts } from './message-attempts.ts'
import type { CheckProof } from '../model/proof.ts'
import type { Random } from '../model/random.ts'
import type { SendBudgetMode } from '../limits/send-budget.ts'
import type { Challenges } from '../guard/challenge.ts'
import type { Guard } from '../guard/guard.ts'
import type { OtpRequest } from '../model/request.ts'
import type { RecordRefusedSend } from './refused-sends.ts'

/** Names of the stores that the operations on OTP requests read and write outside of `Store.decide`. */
type OtpTables =
  | 'applications'
  | 'changes'
  | 'checkBudgets'
  | 'events'
  | 'idempotency'
  | 'otpRequests'
  | 'otpSessions'
  | 'pages'
  | 'phones'
  | 'rateLimits'
  | 'templates'
  | 'webhookEndpoints'

/** The developer or application that a request or a session must belong to. */
export type RequestOwner = { developerId: string } | { appId: string }

/** Dependencies of the operations on OTP requests. */
export type OtpNeeds = {
  store: Store<OtpTables>
  clock: Clock
  newId: NewId
  keys: Keys
  plans: Plans
  delivery: Delivery
  attempts: MessageAttempts
  random: Random
  /** Failed attempts that a phone's check budget allows; 0 turns it off. */
  checkFailuresMax: number
  /** Changes with the configuration while the server runs. */
  sendBudget: () => SendBudgetMode
  guard: Guard
  challenges: Challenges
  recordRefusedSend: RecordRefusedSend
  checkProof: CheckProof
  /**
   * Called after commit with a request that was verified or canceled, or that the sweeper found expired: for the statistics
   * of routes and the reports to providers.
   */
  onEnded(request: OtpRequest): void
}
