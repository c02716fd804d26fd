import { useEffect } from 'react'
import { CliError } from '../../terminal/errors.ts'
import { useConsole, type ServerState } from '../console-context.ts'

const pollIntervalMs = 2000

/**
 * Polls the server's readiness every two seconds, also while the console is paused. When the server becomes reachable
 * again, everything on the screen is refreshed.
 */
export function usePollServerState() {
  const { connection, shell, refresh, crash } = useConsole()
  useEffect(() => {
    let isStopped = false
    let timer: ReturnType<typeof setTimeout> | undefined
    const poll = async () => {
      const state = await fetchServerState(connection.send)
      if (isStopped) return
      const previousState = shell.get().server
      if (previousState !== state) shell.set((previous) => ({ ...previous, server: state }))
      if (previousState !== state && state === 'operational') refresh()
      scheduleNext()
    }
    const scheduleNext = () => {
      timer = setTimeout(() => void poll().catch(crash), pollIntervalMs)
    }
    scheduleNext()
    return () => {
      isStopped = true
      clearTimeout(timer)
    }
  }, [connection, shell, refresh, crash])
}

async function fetchServerState(
  send: ReturnType<typeof useConsole>['connection']['send'],
): Promise<ServerState> {
  try {
    const { status } = await send({ method: 'GET', path: '/v1/health/ready' })
    return status === 200 ? 'operational' : 'not ready'
  } catch (error) {
    if (error instanceof CliError) return 'unreachable'
    throw error
  }
}
