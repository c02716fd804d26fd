import { useEffect } from 'react'
import { useConsole, type Shell } from '../console-context.ts'
import { useStore } from '../store.ts'

export const useShell = (): Shell => useStore(useConsole().shell)

/** The path behind the name of the screen, and the environment that it is in, while the component is there. */
export function useBreadcrumbs(breadcrumbs: readonly string[], environment: 'live' | 'test' | null = null) {
  const { shell } = useConsole()
  const joined = breadcrumbs.join('\n')
  useEffect(() => {
    shell.set((previous) => ({
      ...previous,
      breadcrumbs: joined === '' ? [] : joined.split('\n'),
      environment,
    }))
    return () => shell.set((previous) => ({ ...previous, breadcrumbs: [], environment: null }))
  }, [shell, joined, environment])
}

/** Shows a phone: `+1415***2671` until `m` was pressed. */
export function usePhoneFormatter() {
  const { isUnmasked } = useShell()
  return (phone: string | null) => (phone === null ? '-' : isUnmasked ? phone : maskPhone(phone))
}

/** The country and its region stay readable, and the last digits, by which people know each other's phones. */
export const maskPhone = (phone: string) =>
  phone.length < 9 ? `${phone.slice(0, 2)}***` : `${phone.slice(0, 5)}***${phone.slice(-4)}`
