import { useState } from 'react'
import { useConsole, type Dialog } from '../console-context.ts'
import { useAction } from '../hooks/use-action.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { typeInto } from '../key-router.ts'
import { breakText, tailOf, textOf, widthOf, type Line } from '../spans.ts'
import { DialogBox, dialogWidth, wrapLines } from './DialogBox.tsx'

type Props = { dialog: Extract<Dialog, { kind: 'confirm' }>; width: number; height: number }

/** Destroys only once the name was typed: a key that was hit by accident does nothing. */
export function ConfirmDialog({ dialog, width, height }: Props) {
  const { theme } = useConsole()
  const { paint, symbols } = theme
  const [typed, setTyped] = useState('')
  const { isBusy, problem, close, run } = useAction(dialog, dialog.act)
  const inner = dialogWidth(width)
  // Keyboards write an accent in one way, and whoever gave the name may have done it in the other.
  const isTyped = typed.normalize() === dialog.word.normalize()
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
  const lines: Line[] = [
    ...wrapLines(dialog.lines, width),
    '',
    ...askLines(),
    [
      { text: '> ', paint: paint.dim },
      { text: tailOf(typed, inner - 3), paint: isTyped ? paint.green : undefined },
      symbols.cursor,
    ],
    ...(isBusy ? [{ text: 'working', paint: paint.dim }] : []),
    ...wrapLines(problem, width).map((line) => ({ text: textOf(line), paint: paint.red })),
  ]
  return <DialogBox title={dialog.title} lines={lines} width={width} height={height} />

  /** A name that is too long for one line has to be read whole all the same. */
  function askLines(): Line[] {
    const after = ` to ${dialog.verb}, esc to cancel:`
    const short: Line = ['Type ', { text: dialog.word, paint: paint.bold }, after]
    if (widthOf(short) <= inner) return [short]
    const word = breakText(dialog.word, inner).map((text) => ({ text, paint: paint.bold }))
    return [`Type this${after}`, ...word]
  }
}
