import { useConsole } from '../console-context.ts'
import { useStore } from '../store.ts'

/** Returns the time in milliseconds since the epoch, and renders the component every second. */
export const useNow = () => useStore(useConsole().clock)
