import { useConsole } from '../console-context.ts'
import { usePhoneFormatter } from '../hooks/use-shell.ts'
import type { Handler } from '../key-router.ts'
import { eraseDialog, unlockDialog } from './phone-dialogs.ts'

/** Returns the handlers that unlock and erase a phone number. @param phone undefined if nothing is selected */
export function usePhoneKeys(phone: string | undefined): {
  unlock: Handler | undefined
  erase: Handler | undefined
} {
  const console = useConsole()
  const formatPhone = usePhoneFormatter()
  if (phone === undefined) return { unlock: undefined, erase: undefined }
  if (!phone.startsWith('+')) {
    const unavailable = { unavailable: 'the number is no longer kept' }
    return { unlock: unavailable, erase: unavailable }
  }
  const details = { phone, shown: formatPhone(phone) }
  return {
    unlock: () => console.openDialog(unlockDialog(console, details)),
    erase: () => console.openDialog(eraseDialog(console, details)),
  }
}
