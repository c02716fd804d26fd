import { expect, test } from 'bun:test'
import { readTraceContext, writeWebhookBody } from '../../../src/domain/model/webhook-body.ts'

const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
const event = { id: 'evt_1', data: { metadata: { traceparent: '00-another-01' } } }

test('a trace context is read back from the body that has it', () => {
  const body = writeWebhookBody(event, traceparent)
  expect(JSON.parse(body)).toEqual({ ...event, traceparent })
  expect(readTraceContext(body)).toBe(traceparent)
})

test("a caller's own field of that name is none", () => {
  expect(readTraceContext(writeWebhookBody(event, undefined))).toBeUndefined()
  expect(
    readTraceContext(writeWebhookBody({ data: { text: `,"traceparent":"${traceparent}"}` } }, undefined)),
  ).toBeUndefined()
})
