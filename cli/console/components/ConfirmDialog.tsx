import { useState } from 'react'
import { useConsole, type Dialog } from '../console-context.ts'
import { useAction } from '../hooks/use-action.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { applyTyping } from '../key-router.ts'
import { breakText, visibleTail, plainText, displayWidth, type Line } from '../spans.ts'
import { DialogBox, dialogWidth, wrapLines } from './DialogBox.tsx'

type Props = { dialog: Extract<Dialog, { kind: 'confirm' }>; width: number; height: number }

/** Destroys only once the name was typed: a key that was hit by accident does nothing. */
export function ConfirmDialog({ dialog, width, height }: Props) {
  const { theme } = useConsole()
  const { paint, symbols } = theme
  const [input, setInput] = useState('')
  const { isBusy, problem, close, run } = useAction(dialog, dialog.submit)
  const innerWidth = dialogWidth(width)
  // Keyboards write an accent in one way, and whoever gave the name may have done it in the other.
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

  /** A name that is too long for one line has to be read whole all the same. */
  function promptLines(): Line[] {
    const promptEnd = ` to ${dialog.verb}, esc to cancel:`
    const oneLine: Line = ['Type ', { text: dialog.confirmText, paint: paint.bold }, promptEnd]
    if (displayWidth(oneLine) <= innerWidth) return [oneLine]
    const wordLines = breakText(dialog.confirmText, innerWidth).map((text) => ({ text, paint: paint.bold }))
    return [`Type this${promptEnd}`, ...wordLines]
  }
}
