import { useState } from 'react'
import { asApplication } from '../../client/credentials.ts'
import { CliError } from '../../terminal/errors.ts'
import { useConsole } from '../console-context.ts'
import type { Handler } from '../key-router.ts'

type AsApplication = ReturnType<typeof asApplication>

/**
 * Sending and verifying are an application's to do, not a developer's: its credentials come from the environment, as
 * for the commands. Without them the keys say what is missing.
 */
export function useAppCalls() {
  const { context } = useConsole()
  const [found] = useState(() => findApplication(() => asApplication(context, {})))
  return {
    /** The key's handler where there are credentials, and `reason` stands against nothing else. */
    handler(run: (application: AsApplication) => void, reason: string | null = null): Handler {
      if (found === null) return { unavailable: missing }
      return reason === null ? () => run(found) : { unavailable: reason }
    },
  }
}

/** As long as fits behind the key on 80 columns. */
const missing = 'set OTPD_CLIENT_ID, OTPD_CLIENT_SECRET, OTPD_API_KEY'

function findApplication(find: () => AsApplication): AsApplication | null {
  try {
    return find()
  } catch (error) {
    if (error instanceof CliError) return null
    throw error
  }
}
