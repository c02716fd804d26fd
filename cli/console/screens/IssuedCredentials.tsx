import { useState } from 'react'
import { reserveEnvFile } from '../../client/credentials.ts'
import { CliError, usageError } from '../../terminal/errors.ts'
import { shortPath } from '../../terminal/text.ts'
import { Lines } from '../components/Lines.tsx'
import { required, useConsole, type Dialog } from '../console-context.ts'
import { credentialLines } from '../lines/credentials.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useSecret } from '../hooks/use-secret.ts'
import { useBreadcrumbs } from '../hooks/use-shell.ts'
import type { IssuedCredentialSet } from '../issued-credentials.ts'
import { wrap, type Line } from '../spans.ts'

type Props = { issued: IssuedCredentialSet; width: number; height: number; close(): void }

/** Credentials that the server stores only as a hash; the others can be shown again. */
const shownOnce = new Set(['OTPD_CLIENT_SECRET', 'OTPD_API_KEY', 'OTPD_TOKEN'])

/**
 * Shows credentials that are displayed only once. It blocks all other keys, so that none of them leaves this page, and
 * asks for confirmation if a secret was neither copied nor saved.
 */
export function IssuedCredentials({ issued, width, height, close }: Props) {
  const { theme, openDialog, copy, toast, context, connection } = useConsole()
  const { paint } = theme
  const secret = useSecret()
  const [selectedIndex, setSelectedIndex] = useState(0)
  const [savedVariables, setSavedVariables] = useState<ReadonlySet<string>>(new Set())
  const { credentials } = issued
  useBreadcrumbs([issued.name], issued.environment)
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
      show: { run: secret.toggle, label: secret.isShown ? 'hide' : 'show' },
      copy: selected && {
        run() {
          copy(selected.value, selected.name)
          setSavedVariables(new Set([...savedVariables, selected.variable]))
        },
        label: `copy ${selected.name}`,
      },
      save: () => openDialog(saveDialog()),
      done: isAllSaved ? close : () => openDialog(leaveDialog(issued, close)),
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
    { text: ' Press s to save everything to a new file that only you can read.', paint: paint.dim },
  ]
  return <Lines lines={lines} width={width} height={height} />

  function saveDialog(): Dialog {
    const { io } = context
    return {
      kind: 'form',
      title: 'Save the credentials',
      lines: [`To a new file in ${shortPath(io.workingDirectory, io.homeDirectory)} that only you can read.`],
      fields: [
        {
          name: 'path',
          label: 'file',
          initial: '.env.otpd',
          check: required,
        },
      ],
      verb: 'save',
      async submit({ path = '' }) {
        const file = reserveFile(path)
        const values = Object.fromEntries(credentials.map(({ variable, value }) => [variable, value]))
        if (!file.write(issued.comment, { OTPD_SERVER: connection.server.url, ...values }))
          throw usageError(
            `${path} could not be written.`,
            'Check the free disk space, or choose another directory.',
          )
        setSavedVariables(new Set(credentials.map(({ variable }) => variable)))
        toast(`saved to ${path}`, 'good')
      },
    }
  }

  function reserveFile(path: string) {
    try {
      return reserveEnvFile(context.io, path)
    } catch (error) {
      if (!(error instanceof CliError)) throw error
      throw usageError(
        `${path} already exists or cannot be created.`,
        'Existing files are never overwritten. Choose another name.',
      )
    }
  }
}

const leaveDialog = ({ remedy }: IssuedCredentialSet, close: () => void): Dialog => ({
  kind: 'form',
  title: 'Leave without saving?',
  lines: ['Some secrets were neither saved nor copied. They are not shown again.', remedy],
  fields: [],
  verb: 'leave',
  submit: async () => close(),
})
