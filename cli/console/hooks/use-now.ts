import { useConsole } from '../console-context.ts'
import { useStore } from '../store.ts'

/** The time in milliseconds since the epoch, every second anew: for clocks, ages, and what ends soon. */
export const useNow = () => useStore(useConsole().clock)
