import { useSyncExternalStore } from 'react'
import { useConsole } from '../console-context.ts'

/** The time in milliseconds since the epoch, every second anew or less often: for clocks and for what ends soon. */
export function useNow(everyMs = 1000) {
  const { clock } = useConsole()
  return useSyncExternalStore(clock.subscribe, () => Math.floor(clock.get() / everyMs) * everyMs)
}
