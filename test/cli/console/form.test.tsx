import { afterEach, expect, test } from 'bun:test'
import { Box } from 'ink'
import { FormDialog } from '../../../cli/console/components/FormDialog.tsx'
import type { Dialog } from '../../../cli/console/console-context.ts'
import { CliError } from '../../../cli/terminal/errors.ts'
import { renderConsole } from '../../helpers/console-render.tsx'

let close = () => {}
afterEach(() => close())

function renderForm(refuse: () => void = () => {}) {
  const submitted = Promise.withResolvers<Readonly<Record<string, string>>>()
  const dialog: Extract<Dialog, { kind: 'form' }> = {
    kind: 'form',
    title: 'New thing',
    fields: [
      { name: 'name', label: 'name', check: (value) => (value === '' ? 'required' : null) },
      { name: 'environment', label: 'environment', choices: ['test', 'live', 'lab'] },
      { name: 'note', label: 'note', initial: 'none' },
    ],
    verb: 'create',
    async submit(values) {
      refuse()
      submitted.resolve(values)
    },
  }
  const form = renderConsole(
    <Box width={80} height={20}>
      <FormDialog dialog={dialog} width={80} height={20} />
    </Box>,
  )
  close = form.close
  form.console.shell.set((previous) => ({ ...previous, dialog }))
  return { ...form, submitted: submitted.promise }
}

test('space goes to the next option of a choice, a letter to the next that begins with it', async () => {
  const form = renderForm()
  form.press('tab', ' ')
  await form.waitForText('[live]')
  form.press('l')
  await form.waitForText('[lab]')
  form.press('t')
  await form.waitForText('[test]')
  form.press('x')
  await form.waitForText('[test]')
})

test('tab and shift-tab move between the fields, and past both ends', async () => {
  const form = renderForm()
  for (const [key, label] of [
    ['tab', 'environment'],
    ['tab', 'note'],
    ['tab', 'name'],
    ['shift-tab', 'note'],
    ['shift-tab', 'environment'],
  ] as const) {
    form.press(key)
    await form.waitForText(`▸ ${label}`)
  }
})

test('enter in the last field submits every value, once each is valid', async () => {
  const form = renderForm()
  form.press('enter', 'enter')
  await form.waitForText('▸ note')
  form.press('enter')
  await form.waitForText('✗ required')
  await form.waitForText('▸ name')
  form.press('w', 'e', 'b', 'enter', 'l', 'enter', 'ctrl-u', 'enter')
  expect(await form.submitted).toEqual({ name: 'web', environment: 'live', note: '' })
})

test('values are checked and submitted without the spaces around them', async () => {
  const form = renderForm()
  form.press(' ', 'enter', 'enter', 'enter')
  await form.waitForText('✗ required')
  form.press('w', 'e', 'b', ' ', 'enter', 'enter', ' ', 'enter')
  expect(await form.submitted).toEqual({ name: 'web', environment: 'test', note: 'none' })
})

test('focuses the first field that the server refuses, and says why', async () => {
  const fields = [
    { field: 'environment', fault: 'Expected live or test.' },
    { field: 'note', fault: 'Too long.' },
  ]
  const form = renderForm(() => {
    throw new CliError(6, 'INVALID_ARGUMENT', 'Invalid request. environment: …', { fields })
  })
  form.press('w', 'enter', 'enter', 'enter')
  await form.waitForText('▸ environment')
  await form.waitForText(' environment: Expected live or test.')
  await form.waitForText(' note: Too long.')
  expect(form.frame()).not.toContain('Invalid request')
})

test('a paste that begins with the prefilled text takes its place', async () => {
  const form = renderForm()
  form.press('tab', 'tab')
  form.console.keys.paste('none at all')
  await form.waitForText(/note {2,}none at all/)
  form.console.keys.paste(' none')
  await form.waitForText(/note {2,}none at all none/)
})
