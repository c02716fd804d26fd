import type { Application } from '../../client/resources.ts'
import type { IssuedCredentialSet } from '../issued-credentials.ts'
import type { Handler } from '../key-router.ts'

/** Keys that work in every tab of an application's page. */
export type AppKeys = { [Action in 'nextTab' | 'previousTab' | 'edit' | 'toggle' | 'remove']: Handler }

/** Props of each tab of an application's page. */
export type TabProps = {
  app: Application
  /** To be activated together with the tab's own keys. */
  keys: AppKeys
  width: number
  height: number
  onIssued(issued: IssuedCredentialSet): void
}
