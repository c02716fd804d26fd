import type { ScreenName } from './keymap.ts'
import type { Screen } from './screen.ts'
import { alertsScreen } from './screens/Alerts.tsx'
import { appsScreen } from './screens/Apps.tsx'
import { inboxScreen } from './screens/Inbox.tsx'
import { logsScreen } from './screens/Logs.tsx'
import { otpScreen } from './screens/Otp.tsx'
import { overviewScreen } from './screens/Overview.tsx'
import { usersScreen } from './screens/Users.tsx'
import { auditScreen } from './screens/Audit.tsx'
import { providersScreen } from './screens/Providers.tsx'
import { costsScreen } from './screens/Costs.tsx'
import { routesScreen } from './screens/Routes.tsx'
import { guardScreen } from './screens/Guard.tsx'
import { profileScreen } from './screens/Profile.tsx'
import { webhooksScreen } from './screens/Webhooks.tsx'

/** Every screen, by the name of its keymap section. The keymap also decides their order. */
export const screens: Readonly<Record<ScreenName, Screen>> = {
  overview: overviewScreen,
  apps: appsScreen,
  otp: otpScreen,
  logs: logsScreen,
  webhooks: webhooksScreen,
  inbox: inboxScreen,
  users: usersScreen,
  audit: auditScreen,
  providers: providersScreen,
  guard: guardScreen,
  profile: profileScreen,
  costs: costsScreen,
  routes: routesScreen,
  alerts: alertsScreen,
}
