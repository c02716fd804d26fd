import { useState } from 'react'
import { useConsole, type Dialog } from '../console-context.ts'
import { useAction } from '../hooks/use-action.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { typeInto } from '../key-router.ts'
import { DialogBox } from './DialogBox.tsx'

type Props = { dialog: Extract<Dialog, { kind: 'confirm' }>; width: number; height: number }

/** Destroys only once the name was typed: a key that was hit by accident does nothing. */
export function ConfirmDialog({ dialog, width, height }: Props) {
  const { theme, shell } = useConsole()
  const { paint, symbols } = theme
  const [typed, setTyped] = useState('')
  const close = () => shell.set((before) => ({ ...before, dialog: null }))
  const { isBusy, problem, run } = useAction(dialog.act, close)
  const isTyped = typed === dialog.word
  useKeys(
    'dialog',
    {
      accept: isTyped
        ? { run: () => run(), label: dialog.verb }
        : { unavailable: `type ${dialog.word} first`, label: dialog.verb },
      cancel: close,
    },
    { isModal: true, onText: (text) => setTyped((before) => typeInto(before, text)) },
  )
  const lines = [
    ...dialog.lines,
    '',
    ['Type ', { text: dialog.word, paint: paint.bold }, ` to ${dialog.verb}, esc to cancel:`],
    [
      { text: '> ', paint: paint.dim },
      { text: typed, paint: isTyped ? paint.green : undefined },
      symbols.cursor,
    ],
    ...(isBusy ? [{ text: 'working', paint: paint.dim }] : []),
    ...problem.map((text) => ({ text, paint: paint.red })),
  ]
  return <DialogBox title={dialog.title} lines={lines} width={width} height={height} />
}
