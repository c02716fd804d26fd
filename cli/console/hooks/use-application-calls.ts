import { useState } from 'react'
import { connectAsApplication } from '../../client/credentials.ts'
import { CliError } from '../../terminal/errors.ts'
import { useConsole } from '../console-context.ts'
import type { Handler } from '../key-router.ts'

type ApplicationConnection = ReturnType<typeof connectAsApplication>

/**
 * Sending and verifying are an application's to do, not a developer's: its credentials come from the environment, as
 * for the commands. Without them the keys say what is missing.
 */
export function useApplicationCalls() {
  const { context } = useConsole()
  const [connection] = useState(() => tryConnect(() => connectAsApplication(context, {})))
  return {
    /** The key's handler where there are credentials, and `reason` stands against nothing else. */
    handler(run: (application: ApplicationConnection) => void, reason: string | null = null): Handler {
      if (connection === null) return { unavailable: missingCredentials }
      return reason === null ? () => run(connection) : { unavailable: reason }
    },
  }
}

/** As long as fits behind the key on 80 columns. */
const missingCredentials = 'set OTPD_CLIENT_ID, OTPD_CLIENT_SECRET, OTPD_API_KEY'

function tryConnect(connect: () => ApplicationConnection): ApplicationConnection | null {
  try {
    return connect()
  } catch (error) {
    if (error instanceof CliError) return null
    throw error
  }
}
