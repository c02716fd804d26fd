import { useEffect } from 'react'
import { CliError } from '../../terminal/errors.ts'
import { useConsole, type ServerState } from '../console-context.ts'

const everyMs = 2000

/**
 * Asks the server every two seconds whether it works, also while everything else is paused: a lost server is a state,
 * and when it is back, what is on the screen is asked again.
 */
export function useServerState() {
  const { connection, shell, refresh, crash } = useConsole()
  useEffect(() => {
    let isOver = false
    let timer: ReturnType<typeof setTimeout> | undefined
    const ask = async () => {
      const state = await stateOf(connection.send)
      if (isOver) return
      const before = shell.get().server
      if (before !== state) shell.set((shown) => ({ ...shown, server: state }))
      if (before !== state && state === 'operational') refresh()
      again()
    }
    const again = () => {
      timer = setTimeout(() => void ask().catch(crash), everyMs)
    }
    again()
    return () => {
      isOver = true
      clearTimeout(timer)
    }
  }, [connection, shell, refresh, crash])
}

async function stateOf(send: ReturnType<typeof useConsole>['connection']['send']): Promise<ServerState> {
  try {
    const { status } = await send({ method: 'GET', path: '/v1/health/ready' })
    return status === 200 ? 'operational' : 'not ready'
  } catch (error) {
    if (error instanceof CliError) return 'lost'
    throw error
  }
}
