import { useState } from 'react'
import { useConsole, type Dialog, type Field } from '../console-context.ts'
import { useAction } from '../hooks/use-action.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { typeInto, type Typed } from '../key-router.ts'
import { tailOf, textOf, type Line, type Painter, type Span } from '../spans.ts'
import { DialogBox, dialogWidth, wrapLines } from './DialogBox.tsx'

type Props = { dialog: Extract<Dialog, { kind: 'form' }>; width: number; height: number }
type Values = Readonly<Record<string, string>>

/** Fields to fill in; enter goes to the next one and, from the last, does it. */
export function FormDialog({ dialog, width, height }: Props) {
  const { theme } = useConsole()
  const { paint, symbols } = theme
  const { fields } = dialog
  const [values, setValues] = useState<Values>(() => initialValues(fields))
  const [at, setAt] = useState(0)
  const [faults, setFaults] = useState<Values>({})
  const { isBusy, problem, close, run } = useAction(dialog, dialog.act)
  const field = fields[at]
  const isLast = at >= fields.length - 1

  function accept() {
    if (!isLast) return setAt(at + 1)
    const found = faultsOf(fields, values)
    setFaults(found)
    const wrong = fields.findIndex(({ name }) => found[name] !== undefined)
    if (wrong === -1) run(values)
    else setAt(wrong)
  }

  function type(typed: Typed) {
    if (field === undefined) return
    setFaults({})
    const before = values[field.name] ?? ''
    const { choices } = field
    setValues({
      ...values,
      [field.name]: choices ? nextChoice(choices, before, typed) : typeInto(before, typed),
    })
  }

  useKeys(
    'dialog',
    {
      accept: { run: accept, label: isLast ? dialog.verb : 'next field' },
      nextField: fields.length > 1 ? () => setAt((at + 1) % fields.length) : undefined,
      previousField: fields.length > 1 ? () => setAt((at + fields.length - 1) % fields.length) : undefined,
      cancel: close,
    },
    { isModal: true, onText: type },
  )

  const labelWidth = Math.max(...fields.map(({ label }) => Bun.stringWidth(label)))
  const room = dialogWidth(width) - labelWidth - 4
  const fieldLines = (one: Field, index: number): Line[] => {
    const isHere = index === at
    const value = values[one.name] ?? ''
    const shown = one.isSecret ? symbols.cover.repeat([...value].length) : value
    const fault = faults[one.name]
    const line: Line = [
      { text: isHere ? `${symbols.pointer} ` : '  ', paint: paint.cyan },
      { text: one.label.padEnd(labelWidth + 2), paint: isHere ? paint.bold : paint.dim },
      ...(one.choices
        ? choiceSpans(one.choices, value, room, paint.bold, paint.dim)
        : [tailOf(shown, room - 1), isHere ? symbols.cursor : '']),
    ]
    const below = `${' '.repeat(labelWidth + 4)}${symbols.fail} ${fault}`
    return fault === undefined ? [line] : [line, { text: below, paint: paint.red }]
  }
  const lines: Line[] = [
    ...(dialog.lines ? [...wrapLines(dialog.lines, width), ''] : []),
    ...fields.flatMap(fieldLines),
    ...(fields.length > 0 ? [''] : []),
    {
      text: `enter ${isLast ? dialog.verb : 'next field'}, esc cancel${field?.choices ? ', space another' : ''}`,
      paint: paint.dim,
    },
    ...(isBusy ? [{ text: 'working', paint: paint.dim }] : []),
    ...wrapLines(problem, width).map((line) => ({ text: textOf(line), paint: paint.red })),
  ]
  return <DialogBox title={dialog.title} lines={lines} width={width} height={height} />
}

const initialValues = (fields: readonly Field[]): Values =>
  Object.fromEntries(fields.map(({ name, initial, choices }) => [name, initial ?? choices?.[0] ?? '']))

const faultsOf = (fields: readonly Field[], values: Values): Values =>
  Object.fromEntries(
    fields.flatMap(({ name, check }) => {
      const fault = check?.(values[name] ?? '') ?? null
      return fault === null ? [] : [[name, fault]]
    }),
  )

/** Space goes on to the next one, a letter to the next that begins with it. */
function nextChoice(choices: readonly string[], before: string, typed: Typed) {
  if (!('text' in typed)) return before
  const at = choices.indexOf(before)
  const after = [...choices.slice(at + 1), ...choices.slice(0, at + 1)]
  const next =
    typed.text === ' ' ? after[0] : after.find((choice) => choice.startsWith(typed.text.toLowerCase()))
  return next ?? before
}

/** All of them side by side; where they do not fit, those from the chosen one on. */
function choiceSpans(
  choices: readonly string[],
  value: string,
  room: number,
  chosen: Painter,
  other: Painter,
): Span[] {
  const at = Math.max(0, choices.indexOf(value))
  const fits = choices.reduce((sum, choice) => sum + Bun.stringWidth(choice) + 2, 0) <= room
  const shown = fits ? choices : [...choices.slice(at), ...choices.slice(0, at)]
  return shown.map((choice) =>
    choice === value ? { text: `[${choice}]`, paint: chosen } : { text: ` ${choice} `, paint: other },
  )
}
