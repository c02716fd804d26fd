import { useState } from 'react'
import { connectAsApplication } from '../../client/credentials.ts'
import { CliError } from '../../terminal/errors.ts'
import { useConsole } from '../console-context.ts'
import type { Handler } from '../key-router.ts'

type ApplicationConnection = ReturnType<typeof connectAsApplication>

/**
 * Connects as an application, which alone may send and verify codes. Its credentials come from environment variables, as
 * for the commands; without them the keys say which variables to set.
 */
export function useApplicationCalls() {
  const { context } = useConsole()
  const [connection] = useState(() => tryConnect(() => connectAsApplication(context, {})))
  return {
    /** Returns a key handler that is unavailable without credentials, or for `reason`. */
    handler(run: (application: ApplicationConnection) => void, reason: string | null = null): Handler {
      if (connection === null) return { unavailable: missingCredentials }
      return reason === null ? () => run(connection) : { unavailable: reason }
    },
  }
}

/** Fits on 80 columns, after the key. */
const missingCredentials = 'set OTPD_CLIENT_ID, OTPD_CLIENT_SECRET, OTPD_API_KEY'

function tryConnect(connect: () => ApplicationConnection): ApplicationConnection | null {
  try {
    return connect()
  } catch (error) {
    if (error instanceof CliError) return null
    throw error
  }
}
