import type { OpenScreen } from './screen.ts'

type FormField = { label: string; value: string }

/** The focused field of the form on the screen: `│ ▸ environment  [test]  live  │`. Null while no form is open. */
function focusedField(screen: OpenScreen): FormField | null {
  for (const row of screen.screen()) {
    const [, label, value] = /│ ▸ (.+?) {2,}(.*?) *│/.exec(row) ?? []
    if (label !== undefined && value !== undefined) return { label, value }
  }
  return null
}

/** Presses a key and waits until the focused field changes: which one it is, or its content. */
async function pressInField(screen: OpenScreen, key: string) {
  const before = JSON.stringify(focusedField(screen))
  screen.press(key)
  await screen.waitUntil(
    () => JSON.stringify(focusedField(screen)) !== before,
    `${key} to change the field ${before}`,
  )
}

/**
 * Fills in the form that is open, by the labels of its fields: `{ name: 'web', environment: 'live' }`. A value replaces
 * the content of a text field; in a choice it names an option. Other fields keep their values.
 */
export async function fillForm(screen: OpenScreen, values: Readonly<Record<string, string>>) {
  await screen.waitUntil(() => focusedField(screen) !== null, `a form with ${Object.keys(values).join(', ')}`)
  for (const [label, value] of Object.entries(values)) {
    await focusField(screen, label)
    await (isChoice(screen) ? chooseOption(screen, value) : replaceText(screen, value))
  }
}

/** Submits the form that is open, from whichever field is focused. */
export async function submitForm(screen: OpenScreen) {
  await screen.waitForText(formHint)
  while (formHint.exec(screen.text())?.[1] === 'next field') await pressInField(screen, 'enter')
  screen.press('enter')
}

/** The last line of a form says what enter does: `enter next field, esc cancel`. */
const formHint = /│ enter (.+?), esc cancel/

async function focusField(screen: OpenScreen, label: string) {
  const visited: string[] = []
  for (;;) {
    const current = focusedField(screen)?.label ?? ''
    if (current === label) return
    if (visited.includes(current))
      throw new Error(`The form has no field ${label}, but ${visited.join(', ')}:\n${screen.text()}`)
    visited.push(current)
    await pressInField(screen, 'tab')
  }
}

/** A choice shows its options, and the chosen one in brackets; text fields end in a cursor. */
const isChoice = (screen: OpenScreen) => focusedField(screen)?.value.endsWith('█') === false

async function chooseOption(screen: OpenScreen, option: string) {
  const visited: string[] = []
  for (;;) {
    const value = focusedField(screen)?.value ?? ''
    if (value.includes(`[${option}]`)) return
    if (visited.includes(value)) throw new Error(`The field has no option ${option}:\n${screen.text()}`)
    visited.push(value)
    await pressInField(screen, ' ')
  }
}

async function replaceText(screen: OpenScreen, text: string) {
  if (focusedField(screen)?.value !== '█') await pressInField(screen, 'ctrl-u')
  screen.press(text)
  await screen.waitUntil(() => {
    // A text that is longer than its field shows its end.
    const shown = focusedField(screen)?.value.slice(0, -1) ?? ''
    return shown === text || (shown.length > 20 && text.endsWith(shown))
  }, `the field to hold ${text}`)
}
