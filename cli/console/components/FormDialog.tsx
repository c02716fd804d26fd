import { useState } from 'react'
import type { CliError } from '../../terminal/errors.ts'
import { useConsole, type Dialog, type Field } from '../console-context.ts'
import { useAction } from '../hooks/use-action.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { applyTyping, type TypedInput } from '../key-router.ts'
import { optionSpan, plainText, visibleTail, type Line, type Span } from '../spans.ts'
import { createStore, useStore } from '../store.ts'
import type { Theme } from '../theme.ts'
import { DialogBox, dialogTextWidth, wrapLines } from './DialogBox.tsx'

type Props = { dialog: Extract<Dialog, { kind: 'form' }>; width: number; height: number }
type Values = Readonly<Record<string, string>>

/** A form: enter moves to the next field, and submits in the last one. */
export function FormDialog({ dialog, width, height }: Props) {
  const { theme } = useConsole()
  const { paint, symbols } = theme
  const { fields } = dialog
  // A store, because a handler must see what the key before it changed, also if that is not rendered yet.
  const [form] = useState(() =>
    createStore({ values: initialValues(fields), fieldIndex: 0, fieldErrors: noErrors }),
  )
  const { values, fieldIndex, fieldErrors } = useStore(form)
  const { isBusy, problem, close, run } = useAction(dialog, dialog.submit, focusFault)
  const field = fields[fieldIndex]
  const isLast = fieldIndex >= fields.length - 1

  function focusField(offset: number) {
    form.set((previous) => ({
      ...previous,
      fieldIndex: (previous.fieldIndex + fields.length + offset) % fields.length,
    }))
  }

  /** Focuses the first field that the server refused. */
  function focusFault({ fields: faults }: CliError) {
    const refused = new Set(faults.map(({ field: path }) => path.split('.')[0]))
    const fieldIndex = fields.findIndex(({ name }) => refused.has(name))
    if (fieldIndex !== -1) form.set((previous) => ({ ...previous, fieldIndex }))
  }

  function accept() {
    const current = form.get()
    if (current.fieldIndex < fields.length - 1) return focusField(1)
    const trimmed = Object.fromEntries(
      Object.entries(current.values).map(([name, value]) => [name, value.trim()]),
    )
    const errors = validateFields(fields, trimmed)
    const firstInvalid = fields.findIndex(({ name }) => errors[name] !== undefined)
    if (firstInvalid === -1) run(trimmed)
    else form.set((previous) => ({ ...previous, fieldErrors: errors, fieldIndex: firstInvalid }))
  }

  function typeIntoField(typedInput: TypedInput) {
    form.set((previous) => {
      const focused = fields[previous.fieldIndex]
      if (focused === undefined) return previous
      const { name, choices } = focused
      const value = previous.values[name] ?? ''
      // A paste that begins with the prefilled text takes its place: a whole number after `+`.
      const isWhole = 'text' in typedInput && value === focused.initial && typedInput.text.startsWith(value)
      const newValue = choices
        ? nextChoice(choices, value, typedInput)
        : applyTyping(isWhole ? '' : value, typedInput)
      return { ...previous, fieldErrors: noErrors, values: { ...previous.values, [name]: newValue } }
    })
  }

  useKeys(
    'dialog',
    {
      accept: { run: accept, label: isLast ? dialog.verb : 'next field' },
      nextField: fields.length > 1 ? () => focusField(1) : undefined,
      previousField: fields.length > 1 ? () => focusField(-1) : undefined,
      cancel: close,
    },
    { isModal: true, onText: typeIntoField },
  )

  const labelWidth = Math.max(...fields.map(({ label }) => Bun.stringWidth(label)))
  const room = dialogTextWidth(width) - labelWidth - 4
  const fieldLines = (formField: Field, index: number): Line[] => {
    const isFocused = index === fieldIndex
    const value = values[formField.name] ?? ''
    const displayValue = formField.isSecret ? symbols.mask.repeat([...value].length) : value
    const fieldError = fieldErrors[formField.name]
    const line: Line = [
      { text: isFocused ? `${symbols.pointer} ` : '  ', paint: paint.cyan },
      { text: formField.label.padEnd(labelWidth + 2), paint: isFocused ? paint.bold : paint.dim },
      ...(formField.choices
        ? choiceSpans(formField.choices, value, room, paint)
        : [visibleTail(displayValue, room - 1), isFocused ? symbols.cursor : '']),
    ]
    const errorLine = `${' '.repeat(labelWidth + 4)}${symbols.fail} ${fieldError}`
    return fieldError === undefined ? [line] : [line, { text: errorLine, paint: paint.red }]
  }
  const lines: Line[] = [
    ...(dialog.lines ? [...wrapLines(dialog.lines, width), ''] : []),
    ...fields.flatMap(fieldLines),
    ...(fields.length > 0 ? [''] : []),
    {
      text: `enter ${isLast ? dialog.verb : 'next field'}, esc cancel${field?.choices ? ', space next option' : ''}`,
      paint: paint.dim,
    },
    ...(isBusy ? [{ text: 'working', paint: paint.dim }] : []),
    ...wrapLines(problem, width).map((line) => ({ text: plainText(line), paint: paint.red })),
  ]
  return <DialogBox title={dialog.title} lines={lines} width={width} height={height} />
}

const noErrors: Values = {}

const initialValues = (fields: readonly Field[]): Values =>
  Object.fromEntries(fields.map(({ name, initial, choices }) => [name, initial ?? choices?.[0] ?? '']))

const validateFields = (fields: readonly Field[], values: Values): Values =>
  Object.fromEntries(
    fields.flatMap(({ name, check }) => {
      const fieldError = check?.(values[name] ?? '') ?? null
      return fieldError === null ? [] : [[name, fieldError]]
    }),
  )

/** Space selects the next option, a letter the next option that begins with it. */
function nextChoice(choices: readonly string[], previous: string, typedInput: TypedInput) {
  if (!('text' in typedInput)) return previous
  const choiceIndex = choices.indexOf(previous)
  const followingChoices = [...choices.slice(choiceIndex + 1), ...choices.slice(0, choiceIndex + 1)]
  const nextValue =
    typedInput.text === ' '
      ? followingChoices[0]
      : followingChoices.find((choice) => choice.startsWith(typedInput.text.toLowerCase()))
  return nextValue ?? previous
}

/** Lists the options on one line; if they do not fit, beginning with the chosen one. */
function choiceSpans(choices: readonly string[], value: string, room: number, paint: Theme['paint']): Span[] {
  const choiceIndex = Math.max(0, choices.indexOf(value))
  const fits = choices.reduce((sum, choice) => sum + Bun.stringWidth(choice) + 2, 0) <= room
  const visibleChoices = fits ? choices : [...choices.slice(choiceIndex), ...choices.slice(0, choiceIndex)]
  return visibleChoices.map((choice) => optionSpan(choice, choice === value, paint))
}
