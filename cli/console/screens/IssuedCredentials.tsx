import { useState } from 'react'
import { reserveEnvFile } from '../../client/credentials.ts'
import { CliError, usageError } from '../../terminal/errors.ts'
import { shortPath } from '../../terminal/text.ts'
import { Lines } from '../components/Lines.tsx'
import { useConsole, type Dialog } from '../console-context.ts'
import { credentialLines } from '../lines/credentials.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useSecret } from '../hooks/use-secret.ts'
import { useBreadcrumbs } from '../hooks/use-shell.ts'
import type { IssuedCredentialSet } from '../issued-credentials.ts'
import { wrap, type Line } from '../spans.ts'

type Props = { issued: IssuedCredentialSet; width: number; height: number; close(): void }

/** The others can be read again. */
const shownOnce = new Set(['OTPD_CLIENT_SECRET', 'OTPD_API_KEY'])

/**
 * Credentials that nobody will be shown again. Only its own keys work meanwhile, so that none of them loses what is
 * here; and whoever has neither copied nor saved it is asked before it goes.
 */
export function IssuedCredentials({ issued, width, height, close }: Props) {
  const { theme, openDialog, copy, toast, context, connection } = useConsole()
  const { paint } = theme
  const secret = useSecret()
  const [selectedIndex, setSelectedIndex] = useState(0)
  const [savedVariables, setSavedVariables] = useState<ReadonlySet<string>>(new Set())
  const { credentials } = issued
  useBreadcrumbs([issued.appName], issued.environment)
  const selected = credentials[selectedIndex]
  const lastIndex = credentials.length - 1
  const isAllSaved = credentials.every(
    ({ variable }) => !shownOnce.has(variable) || savedVariables.has(variable),
  )
  useKeys(
    'issued',
    {
      down: lastIndex === 0 ? undefined : () => setSelectedIndex(Math.min(lastIndex, selectedIndex + 1)),
      up: lastIndex === 0 ? undefined : () => setSelectedIndex(Math.max(0, selectedIndex - 1)),
      show: { run: secret.toggle, label: secret.isShown ? 'cover' : 'show' },
      copy: selected && {
        run() {
          copy(selected.value, selected.name)
          setSavedVariables(new Set([...savedVariables, selected.variable]))
        },
        label: `copy ${selected.name}`,
      },
      save: () => openDialog(saveDialog()),
      done: isAllSaved ? close : () => openDialog(leaveDialog(close)),
    },
    { isModal: true },
  )
  const rows = credentials.map(({ label, value, variable }) => ({
    label,
    value: variable === 'OTPD_CLIENT_ID' ? value : secret.maskUnlessShown(value),
  }))
  const blankLine = height > 14 ? [''] : []
  const lines: Line[] = [
    ...blankLine,
    [' ', theme.status('done', ''), { text: ` ${issued.title}`, paint: paint.bold }],
    ...wrap(issued.about, width - 2).map((text) => ({ text: ` ${text}`, paint: paint.yellow })),
    ...blankLine,
    ...credentialLines(rows, selectedIndex, width, theme),
    ...blankLine,
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
      async submit({ path: input = '' }) {
        const path = input.trim()
        const file = reserveFile(path)
        const values = Object.fromEntries(credentials.map(({ variable, value }) => [variable, value]))
        if (!file.write(issued.comment, { OTPD_SERVER: connection.server.url, ...values }))
          throw usageError(`${path} could not be written.`, 'Is the disk full? Name a file elsewhere.')
        setSavedVariables(new Set(credentials.map(({ variable }) => variable)))
        toast(`saved in ${path}`, 'good')
      },
    }
  }

  function reserveFile(path: string) {
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
  submit: async () => close(),
})
