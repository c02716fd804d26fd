import { useEffect } from 'react'
import { useConsole, type Environment, type Shell } from '../console-context.ts'
import { useStore } from '../store.ts'

/** Returns the state of the shell, and renders the component when it changes. */
export const useShell = (): Shell => useStore(useConsole().shell)

/** Sets the path after the title of the screen, and the environment badge, while the component is mounted. */
export function useBreadcrumbs(breadcrumbs: readonly string[], environment: Environment | null = null) {
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

/** Returns the environment that alone is shown, as a query parameter; undefined if both are. */
export const useOnlyEnvironment = (): Environment | undefined => useShell().onlyEnvironment ?? undefined

/** Returns a function that formats a phone number: masked (`+1415***2671`) until `m` is pressed. */
export function usePhoneFormatter() {
  const { isUnmasked } = useShell()
  return (phone: string | null) => (phone === null ? '-' : isUnmasked ? phone : maskPhone(phone))
}

/**
 * Masks a phone number on screen: `+14155552671` becomes `+1415***2671`. Country and area stay readable, so that a burst
 * to one range of numbers is visible, and the last digits, by which people recognize a number. `erased` and pseudonyms stay
 * as they are.
 */
export const maskPhone = (phone: string) =>
  !phone.startsWith('+')
    ? phone
    : phone.length < 9
      ? `${phone.slice(0, 2)}***`
      : `${phone.slice(0, 5)}***${phone.slice(-4)}`
