import { afterEach, expect, test } from 'bun:test'
import { Box } from 'ink'
import { FormDialog } from '../../../cli/console/components/FormDialog.tsx'
import type { Dialog } from '../../../cli/console/console-context.ts'
import { renderConsole } from '../../helpers/console-render.tsx'

let close = () => {}
afterEach(() => close())

function renderForm() {
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
    submit: async (values) => submitted.resolve(values),
  }
  const form = renderConsole(
    <Box width={80} height={20}>
      <FormDialog dialog={dialog} width={80} height={20} />
    </Box>,
  )
  close = form.close
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

test('a paste that begins with the prefilled text takes its place', async () => {
  const form = renderForm()
  form.press('tab', 'tab')
  form.console.keys.paste('none at all')
  await form.waitForText(/note {2,}none at all/)
  form.console.keys.paste(' none')
  await form.waitForText(/note {2,}none at all none/)
})
