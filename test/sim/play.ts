import { signatureHeaders } from '../../src/shared/webhook-signature.ts'
import type { Plan, Step } from './plan.ts'
import { noFaults } from './network.ts'
import { payments, repeatPayment, type Payment } from './payments.ts'
import { providerSecret, type Simulation } from './simulation.ts'

const share = 0.4

/** Does one step of a plan. Nothing is awaited: calls and faults overlap. */
export function play(simulation: Simulation, step: Step): void {
  const { client, model, shop, scheduler, network, providers, receiver, chance } = simulation
  const appAt = (index: number) => {
    const app = shop.apps[index % shop.apps.length]
    if (!app) throw new Error('no application')
    return app
  }
  const during = (forMs: number, begin: () => void, end: () => void) => {
    begin()
    scheduler.after(forMs, end)
  }
  const send = async (app: number, phoneIndex: number, payment: Payment | null) => {
    const phone = simulation.phone(phoneIndex)
    const outcome = await client.call('POST', '/v1/otp/send', {
      headers: appAt(app).headers,
      body: { phone, ...(payment && { template: 'payment', variables: payment }) },
    })
    model.onSend(app, { phone, payment }, outcome)
  }
  const request = 'request' in step ? model.recent(step.request) : undefined
  switch (step.kind) {
    case 'send':
      void send(step.app, step.phone, payments[step.payment ?? -1] ?? null)
      break
    case 'burst':
      for (const phone of step.phones) void send(step.app, phone, null)
      break
    case 'verify': {
      if (!request) break
      const wrong = String((Number(request.code || '1') + 1) % 1_000_000).padStart(6, '0')
      const code = step.guess === 'right' && request.code !== '' ? request.code : wrong
      const payment = repeatPayment(request.payment, step.payment)
      const body = {
        ...(step.byPhone ? { phone: request.phone } : { requestId: request.id }),
        code,
        ...(payment && { variables: payment }),
      }
      for (let time = 0; time < step.times; time++)
        void client
          .call('POST', '/v1/otp/verify', { headers: appAt(request.app).headers, body })
          .then((outcome) =>
            step.byPhone && outcome.answer?.status !== 200
              ? undefined
              : model.onVerify(request.app, outcome, request, { code, payment }),
          )
      break
    }
    case 'resend':
    case 'cancel':
      if (request)
        void client
          .call('POST', `/v1/otp/${step.kind}`, {
            headers: appAt(request.app).headers,
            body: { requestId: request.id },
          })
          .then((outcome) => (step.kind === 'cancel' ? model.onCancel(request, outcome) : undefined))
      break
    case 'get':
      if (request) {
        const before = { ...request }
        void client
          .call('GET', `/v1/otp/${request.id}`, { headers: shop.token })
          .then((outcome) => model.onGet(request, outcome, before))
      }
      break
    case 'receipt': {
      const message = request?.messages.at(-1)
      if (!message?.callbackPath) break
      const status = chance.choose(['delivered', 'delivered', 'sent', 'undelivered'])
      const body = JSON.stringify({ messageId: message.messageId, status })
      const headers = signatureHeaders(providerSecret, { id: `r${scheduler.now()}`, body }, scheduler.now())
      void client.call('POST', message.callbackPath, { headers, body })
      break
    }
    case 'list':
      void client.call('GET', `/v1/otp?appId=${appAt(step.app).id}&limit=50`, { headers: shop.token })
      break
    case 'rotate': {
      const app = appAt(step.app)
      void client
        .call('POST', `/v1/applications/${app.id}/rotate/api`, { headers: shop.token })
        .then(({ answer }) =>
          answer?.status === 200
            ? void (app.headers = { ...app.headers, 'x-api-key': String(answer.data['value']) })
            : // The answer with the new key may have been lost.
              void scheduler.after(5_000, () => play(simulation, step)),
        )
      break
    }
    case 'erase': {
      const phone = simulation.phone(step.phone)
      for (const one of model.requests) if (one.phone === phone) one.isErased = true
      void client.call('DELETE', `/v1/users/${encodeURIComponent(phone)}`, { headers: shop.token })
      break
    }
    case 'stream':
      simulation.log.open(step.forMs)
      break
    case 'kill':
    case 'power-cut':
    case 'stop':
      void simulation.restart(step.kind)
      break
    case 'pause':
      simulation.node()?.pause(step.forMs)
      break
    case 'clock':
      simulation.node()?.stepClock(step.byMs)
      break
    case 'network':
      during(
        step.forMs,
        () => {
          const all = { refused: share, reset: share, silent: 0.2, twice: share, slow: share }
          network.setFaults(step.fault === 'all' ? all : { ...noFaults, [step.fault]: share })
          if (step.fault === 'all' || step.fault === 'reset') simulation.setLost(0.3)
        },
        () => {
          network.setFaults(noFaults)
          simulation.setLost(0)
        },
      )
      break
    case 'receiver':
      during(
        step.forMs,
        () => receiver.setFailing(true),
        () => receiver.setFailing(false),
      )
      break
    case 'provider': {
      const provider = chance.choose(providers)
      during(
        step.forMs,
        () => provider.setFault(step.fault),
        () => provider.setFault('none'),
      )
      break
    }
    case 'slow-disk':
      during(
        step.forMs,
        () => simulation.setDiskFaults({ flushMs: step.flushMs, fails: 0 }),
        () => simulation.setDiskFaults({ flushMs: 1, fails: 0 }),
      )
      break
    case 'disk-error':
      simulation.setDiskFaults({ flushMs: 1, fails: 1 })
      break
    case 'wait':
      break
  }
}

/** Schedules the steps of a plan from now on. */
export function schedulePlan(simulation: Simulation, plan: Plan): void {
  for (const step of plan.steps)
    simulation.scheduler.after(step.at, () => {
      simulation.trace(`step ${step.kind}`)
      play(simulation, step)
    })
}
