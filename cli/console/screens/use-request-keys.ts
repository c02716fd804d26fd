import type { AppCredentials } from '../../client/api.ts'
import type { OtpRequest } from '../../client/resources.ts'
import { useConsole, type Dialog } from '../console-context.ts'
import type { Handler } from '../key-router.ts'
import { cancelDialog, resendDialog, verifyDialog } from './otp-dialogs.ts'
import { useApplicationCalls } from '../hooks/use-application-calls.ts'
import { useApplications } from '../hooks/use-applications.ts'
import { usePhoneFormatter } from '../hooks/use-shell.ts'

/**
 * Returns the handlers that verify, resend and cancel a request. They say why once it is closed. Of a pending one there are
 * none until the applications are loaded.
 *
 * @param code the request's code, if it is known
 */
export function useRequestKeys(request: OtpRequest, code: string | null) {
  const console = useConsole()
  const formatPhone = usePhoneFormatter()
  const callAsApplication = useApplicationCalls()
  const { data: applications } = useApplications()
  const app = applications?.find(({ id }) => id === request.appId)
  const details = { phone: formatPhone(request.phone), code: code ?? undefined }
  const handler = (dialog: (credentials: AppCredentials) => Dialog): Handler | undefined => {
    if (request.status !== 'pending') return { unavailable: `the request is ${request.status}` }
    if (applications === undefined) return undefined
    if (app === undefined) return { unavailable: 'its application was deleted' }
    return () => callAsApplication(app, (credentials) => console.openDialog(dialog(credentials)))
  }
  return {
    verify: handler((credentials) => verifyDialog(console, credentials, request, details)),
    resend: handler((credentials) => resendDialog(console, credentials, request, details)),
    cancel: handler((credentials) => cancelDialog(console, credentials, request, details)),
  }
}
