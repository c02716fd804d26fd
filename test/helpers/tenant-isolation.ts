import { expect } from 'bun:test'
import { nonexistentIds, type Tenant, type ApiTester, type ApiTestRequest } from './api-tester.ts'
import type { Operation } from './openapi.ts'

export const isForConsole = ({ security }: Operation) => security.some((scheme) => 'console' in scheme)
export const isForApplications = ({ security }: Operation) => security.some((scheme) => 'apiKey' in scheme)

export type TenantIsolationChecker = ReturnType<typeof createTenantIsolationChecker>

/** Compares calls about another tenant's resources with the same calls about resources that do not exist. */
export function createTenantIsolationChecker(apiTester: ApiTester) {
  /** Returns what a caller can observe: everything except the trace id. */
  async function callAsCaller(operation: Operation, request: ApiTestRequest) {
    const { response, faults } = await apiTester.callAndCheck(operation, request)
    expect(faults).toEqual([])
    const traceId = response.headers.get('x-request-id') ?? ''
    const headers = [...response.headers].filter(([name]) => name !== 'x-request-id')
    return { status: response.status, headers, body: response.text.replaceAll(traceId, 'req') }
  }

  /** Makes the same call about another tenant's resource and about one that does not exist. */
  async function compare(
    operation: Operation,
    as: Record<string, string>,
    tenant: Tenant,
    absent = nonexistentIds,
  ) {
    const absentTenant: Tenant = {
      ...tenant,
      application: { ...tenant.application, id: absent.appId, projectId: absent.projectId },
      requestId: absent.requestId,
      webhookId: absent.webhookId,
      deliveryId: absent.deliveryId,
      tokenId: absent.tokenId,
      guardRuleId: absent.guardRuleId,
      phone: absent.phone,
    }
    const buildRequest = (owner: Tenant) => ({
      as,
      path: apiTester.fillPath(operation, owner),
      body: operation.body && JSON.stringify(apiTester.validBody(operation, owner)),
    })
    return {
      foreign: await callAsCaller(operation, buildRequest(tenant)),
      absent: await callAsCaller(operation, buildRequest(absentTenant)),
    }
  }

  const operationsWithIds = apiTester.operations.filter(({ path }) => path.includes('{'))

  return {
    callAsCaller,
    compare,
    operationsWithIds,
    /** Operations for developers, with ids of resources in their path or body. */
    forConsole: [
      ...operationsWithIds.filter(isForConsole),
      ...apiTester.operations.filter(({ operationId }) =>
        ['createApplication', 'createGuardRule', 'createWebhook'].includes(operationId),
      ),
    ],
    /** Operations for applications, with ids of requests in their path or body. */
    forApplications: [
      ...apiTester.operations.filter((operation) => operation.body?.properties?.['requestId']),
      ...operationsWithIds.filter(
        (operation) => isForApplications(operation) && operation.path.startsWith('/v1/otp/'),
      ),
    ],
  }
}
