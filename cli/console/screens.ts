import { appsScreen } from './screens/Apps.tsx'
import { inboxScreen } from './screens/Inbox.tsx'
import { logsScreen } from './screens/Logs.tsx'
import { otpScreen } from './screens/Otp.tsx'
import { overviewScreen } from './screens/Overview.tsx'
import { webhooksScreen } from './screens/Webhooks.tsx'
import type { Screen } from './screen.ts'

/** In the order of their keys. */
export const screens: readonly [Screen, ...Screen[]] = [
  overviewScreen,
  appsScreen,
  otpScreen,
  logsScreen,
  webhooksScreen,
  inboxScreen,
]
