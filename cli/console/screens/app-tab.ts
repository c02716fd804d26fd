import type { Application, SentOtp } from '../../client/resources.ts'
import type { IssuedCredentialSet } from '../issued-credentials.ts'
import type { Handler } from '../key-router.ts'

/** Keys that work in every tab of an application's page. */
export type AppKeys = {
  [Action in 'nextTab' | 'previousTab' | 'send' | 'edit' | 'page' | 'toggle' | 'remove']: Handler
}

/** A code that was sent from the page. `code` is known for test applications only. */
export type SentCode = Pick<SentOtp, 'requestId' | 'code'>

/** Props of each tab of an application's page. */
export type TabProps = {
  app: Application
  /** To be activated together with the tab's own keys. */
  keys: AppKeys
  width: number
  height: number
  /** The last code that was sent from this page; null before the first. */
  sent: SentCode | null
  onIssued(issued: IssuedCredentialSet): void
}
