import { expect, test } from 'bun:test'
import { eventReference } from '../../../cli/guides/reference/events.ts'

test('the example of session.verified names its session in the metadata, as its request does', () => {
  const [, section = ''] = eventReference().split('### session.verified')
  const [, body = ''] = /```json\n(.*?)```/s.exec(section) ?? []
  const { data } = JSON.parse(body)
  expect(data.metadata).toEqual({ sessionId: data.sessionId })
})
