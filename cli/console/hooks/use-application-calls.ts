import type { AppCredentials } from '../../client/api.ts'
import type { Application } from '../../client/resources.ts'
import { credentialsDialog, findCredentials } from '../app-credentials.ts'
import { useConsole } from '../console-context.ts'

/**
 * Returns a function that runs a call as an application, which alone may send and verify codes. It asks for the
 * application's credentials if the console does not have them.
 */
export function useApplicationCalls() {
  const console = useConsole()
  return (app: Pick<Application, 'clientId' | 'name'>, run: (credentials: AppCredentials) => void): void => {
    const credentials = findCredentials(console, app)
    if (credentials === null) console.openDialog(credentialsDialog(console, app, run))
    else run(credentials)
  }
}
