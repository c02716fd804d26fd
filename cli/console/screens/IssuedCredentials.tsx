import { useState } from 'react'
import { reserveEnvFile } from '../../client/credentials.ts'
import { CliError, usageError } from '../../terminal/errors.ts'
import { shortPath } from '../../terminal/text.ts'
import { Lines } from '../components/Lines.tsx'
import { useConsole, type Dialog } from '../console-context.ts'
import { credentialLines } from '../lines/credentials.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useSecret } from '../hooks/use-secret.ts'
import { useCrumbs } from '../hooks/use-shell.ts'
import type { Issued } from '../issued.ts'
import { wrap, type Line } from '../spans.ts'

type Props = { issued: Issued; width: number; height: number; close(): void }

/** The others can be read again. */
const onceOnly = new Set(['OTPD_CLIENT_SECRET', 'OTPD_API_KEY'])

/**
 * Credentials that nobody will be shown again. Only its own keys work meanwhile, so that none of them loses what is
 * here; and whoever has neither copied nor saved it is asked before it goes.
 */
export function IssuedCredentials({ issued, width, height, close }: Props) {
  const { theme, ask, copy, toast, context, connection } = useConsole()
  const { paint } = theme
  const secret = useSecret()
  const [at, setAt] = useState(0)
  const [taken, setTaken] = useState<ReadonlySet<string>>(new Set())
  const { credentials } = issued
  useCrumbs([issued.appName], issued.environment)
  const selected = credentials[at]
  const last = credentials.length - 1
  const isTaken = credentials.every(({ variable }) => !onceOnly.has(variable) || taken.has(variable))
  useKeys(
    'issued',
    {
      down: last === 0 ? undefined : () => setAt(Math.min(last, at + 1)),
      up: last === 0 ? undefined : () => setAt(Math.max(0, at - 1)),
      show: { run: secret.toggle, label: secret.isShown ? 'cover' : 'show' },
      copy: selected && {
        run() {
          copy(selected.value, selected.name)
          setTaken(new Set([...taken, selected.variable]))
        },
        label: `copy ${selected.name}`,
      },
      save: () => ask(saveDialog()),
      done: isTaken ? close : () => ask(leaveDialog(close)),
    },
    { isModal: true },
  )
  const rows = credentials.map(({ label, value, variable }) => ({
    label,
    value: variable === 'OTPD_CLIENT_ID' ? value : secret.cover(value),
  }))
  const gap = height > 14 ? [''] : []
  const lines: Line[] = [
    ...gap,
    [' ', theme.status('done', ''), { text: ` ${issued.title}`, paint: paint.bold }],
    ...wrap(issued.about, width - 2).map((text) => ({ text: ` ${text}`, paint: paint.yellow })),
    ...gap,
    ...credentialLines(rows, at, width, theme),
    ...gap,
    { text: ' s saves all of it in a new file that only you can read.', paint: paint.dim },
  ]
  return <Lines lines={lines} width={width} height={height} />

  function saveDialog(): Dialog {
    const { io } = context
    return {
      kind: 'form',
      title: 'Save the credentials',
      lines: [`A new file in ${shortPath(io.workingDirectory, io.homeDirectory)}, which only you can read.`],
      fields: [
        {
          name: 'path',
          label: 'file',
          initial: '.env.otpd',
          check: (path) => (path.trim() ? null : 'is needed'),
        },
      ],
      verb: 'save',
      async act({ path: typed = '' }) {
        const path = typed.trim()
        const file = reserve(path)
        const values = Object.fromEntries(credentials.map(({ variable, value }) => [variable, value]))
        if (!file.fill(issued.comment, { OTPD_SERVER: connection.server.url, ...values }))
          throw usageError(`${path} could not be written.`, 'Is the disk full? Name a file elsewhere.')
        setTaken(new Set(credentials.map(({ variable }) => variable)))
        toast(`saved in ${path}`, 'good')
      },
    }
  }

  function reserve(path: string) {
    try {
      return reserveEnvFile(context.io, path)
    } catch (error) {
      if (!(error instanceof CliError)) throw error
      throw usageError(
        `${path} exists already, or cannot be made.`,
        'No file is ever overwritten: name another.',
      )
    }
  }
}

const leaveDialog = (close: () => void): Dialog => ({
  kind: 'form',
  title: 'Leave without saving?',
  lines: [
    'Not all of it was saved or copied, and it is not shown again.',
    'R in the application makes new ones.',
  ],
  fields: [],
  verb: 'leave',
  act: async () => close(),
})
