import { useState } from 'react'
import { useConsole, type Dialog } from '../console-context.ts'
import { useAction } from '../hooks/use-action.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { applyTyping } from '../key-router.ts'
import { breakText, visibleTail, plainText, displayWidth, type Line } from '../spans.ts'
import { DialogBox, dialogTextWidth, wrapLines } from './DialogBox.tsx'

type Props = { dialog: Extract<Dialog, { kind: 'confirm' }>; width: number; height: number }

/** Confirms a destructive action: it runs only after the name is typed, so that no single key destroys anything. */
export function ConfirmDialog({ dialog, width, height }: Props) {
  const { theme } = useConsole()
  const { paint, symbols } = theme
  const [input, setInput] = useState('')
  const { isBusy, problem, close, run } = useAction(dialog, dialog.submit)
  const innerWidth = dialogTextWidth(width)
  // A keyboard may compose an accent differently (NFC, NFD) from the program that stored the name.
  const isConfirmed = input.normalize() === dialog.confirmText.normalize()
  useKeys(
    'dialog',
    {
      accept: isConfirmed
        ? { run: () => run(), label: dialog.verb }
        : { unavailable: `type ${dialog.confirmText} first`, label: dialog.verb },
      cancel: close,
    },
    { isModal: true, onText: (key) => setInput((previous) => applyTyping(previous, key)) },
  )
  const lines: Line[] = [
    ...wrapLines(dialog.lines, width),
    '',
    ...promptLines(),
    [
      { text: '> ', paint: paint.dim },
      { text: visibleTail(input, innerWidth - 3), paint: isConfirmed ? paint.green : undefined },
      symbols.cursor,
    ],
    ...(isBusy ? [{ text: 'working', paint: paint.dim }] : []),
    ...wrapLines(problem, width).map((line) => ({ text: plainText(line), paint: paint.red })),
  ]
  return <DialogBox title={dialog.title} lines={lines} width={width} height={height} />

  /** Shows the whole name, on several lines if it is too long for one. */
  function promptLines(): Line[] {
    const promptEnd = ` to ${dialog.verb}, esc to cancel:`
    const oneLine: Line = ['Type ', { text: dialog.confirmText, paint: paint.bold }, promptEnd]
    if (displayWidth(oneLine) <= innerWidth) return [oneLine]
    const wordLines = breakText(dialog.confirmText, innerWidth).map((text) => ({ text, paint: paint.bold }))
    return [`Type this${promptEnd}`, ...wordLines]
  }
}
