import { expect, test } from 'bun:test'
import { choiceText } from '../../cli/client/choice-text.ts'
import { savedLines } from '../../cli/commands/routes.ts'
import type { RouteState } from '../../cli/client/resources.ts'

const considered = [
  { provider: 'main', price: '0.0079', conversion: 87.4, samples: 412 },
  { provider: 'spare', price: null, conversion: 91, samples: 88 },
]

test('a decision is one line: the reason, then each provider with price, conversion and codes', () => {
  expect(choiceText({ strategy: 'cost', reason: 'best', considered })).toBe(
    'least cost per verified code: main 0.0079, 87% of 412 | spare no price, 91% of 88',
  )
  expect(choiceText({ strategy: 'conversion', reason: 'others_open', considered })).toStartWith(
    'the circuit of the better one is open: main',
  )
})

const route = (saved: string | null): RouteState => ({
  channel: 'sms',
  country: 'NL',
  strategy: 'cost',
  reason: 'best',
  providers: [],
  firstProvider: 'main',
  currency: 'EUR',
  sent: 10,
  saved,
})

test('the savings of all routes are summed up, and left out where prices are missing', () => {
  expect(savedLines([route('1.5'), route(null), route('2.25')])).toEqual([
    'Your messages of 30 days: strategies saved about 3.75 EUR, compared with the fixed order.',
  ])
  expect(savedLines([route('-0.5')])[0]).toContain('strategies cost about 0.50 EUR more')
  expect(savedLines([route(null)])).toEqual([])
})
