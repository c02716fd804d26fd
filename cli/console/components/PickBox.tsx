import { useState } from 'react'
import { useConsole, type Choice } from '../console-context.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { windowOffset } from '../hooks/use-list.ts'
import { applyTyping } from '../key-router.ts'
import { rank } from '../rank.ts'
import { fitSpan, selectionBar, visibleTail, type Line, type Span } from '../spans.ts'
import { DialogBox, dialogTextWidth } from './DialogBox.tsx'

type Props = {
  title: string
  choices: readonly Choice[]
  /** Returns options that follow from the typed text itself; they come first. */
  choicesFor?(text: string): readonly Choice[]
  close(): void
  width: number
  height: number
}

const rowsMax = 14

/** A box with a text field and the options that match it, the best first. */
export function PickBox({ title, choices, choicesFor, close, width, height }: Props) {
  const { theme, toast } = useConsole()
  const { paint, symbols } = theme
  const [{ text, index }, setState] = useState({ text: '', index: 0 })
  const matches = [...(choicesFor?.(text) ?? []), ...rank(text, choices)]
  const rowCount = Math.max(1, Math.min(rowsMax, height - 5))
  const selectedIndex = Math.min(index, matches.length - 1)
  const selected = matches[selectedIndex]
  const reason = selected?.unavailable ?? null
  const move = (offset: number) =>
    setState({ text, index: (selectedIndex + offset + matches.length) % Math.max(1, matches.length) })
  useKeys(
    'pick',
    {
      accept: () => {
        if (selected === undefined) return
        if (reason !== null) return toast(`${selected.label} is unavailable: ${reason}`)
        close()
        selected.run()
      },
      down: () => move(1),
      up: () => move(-1),
      cancel: close,
    },
    {
      isModal: true,
      onText: (typed) => setState((previous) => ({ text: applyTyping(previous.text, typed), index: 0 })),
    },
  )
  const innerWidth = dialogTextWidth(width)
  const offset = windowOffset(0, selectedIndex, rowCount, matches.length)
  const rows = matches.slice(offset, offset + rowCount).map((choice, row): Line => {
    const isSelected = offset + row === selectedIndex
    const line = choiceLine(choice, isSelected ? `${symbols.pointer} ` : '  ')
    return isSelected ? selectionBar(line, innerWidth, theme) : line
  })
  const lines: Line[] = [
    [{ text: '> ', paint: paint.cyan }, visibleTail(text, innerWidth - 3), symbols.cursor],
    '',
    ...(matches.length === 0 ? [{ text: '  Nothing matches.', paint: paint.dim }] : rows),
  ]
  // A fixed height: a box that moves with each key is hard to read.
  while (lines.length < Math.min(rowCount, Math.max(choices.length, 1)) + 2) lines.push('')
  return <DialogBox title={title} lines={lines} width={width} height={height} />

  function choiceLine({ kind, label, detail = '', unavailable = null }: Choice, pointer: Span): Line {
    const kindWidth = Bun.stringWidth(kind)
    const room = Math.max(4, innerWidth - kindWidth - 4)
    const style = unavailable === null ? undefined : paint.dim
    const labelWidth = Math.min(Bun.stringWidth(label), room)
    return [
      pointer,
      fitSpan({ text: label, paint: style }, labelWidth, symbols.ellipsis),
      fitSpan(
        { text: detail === '' ? '' : `  ${detail}`, paint: paint.dim },
        room - labelWidth,
        symbols.ellipsis,
      ),
      '  ',
      { text: kind, paint: paint.dim },
    ]
  }
}
