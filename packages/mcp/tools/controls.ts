/**
 * `controls`, `propose` and `submit`: the only way to change anything. A control is checked first, and then submitted as it was checked;
 * the rules of the server decide whether it runs, and whether it waits until somebody approves it.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { z } from 'zod'
import { type Arguments, ConnectionError, type Consumer, type Sample, valueToJson } from '../../../client/index.ts'
import { ifReadable, isoTime, type JsonObject, listOf } from '../answer.ts'
import type { Proposal } from '../proposals.ts'
import { argumentsInput, defineTool, json, READING, type ToolContext, textInput, toArguments } from '../tool.ts'

/** Clients give up a call after a minute. */
const RESULT_MS = 40_000
/** What has ended by then did not wait for anybody. */
const PROMPT_MS = 1_500
const MAX_CONTROLS = 10_000

/** The server records whom a call was for, and keys are ours. */
const OWN_ARGUMENTS = ['idempotency_key', 'dry_run', 'on_behalf_of']

export const controlsTool = defineTool({
  name: 'controls',
  title: 'Controls',
  description: 'Lists the controls that this token may be allowed to run, with their arguments. `propose` checks one.',
  annotations: READING,
  input: {
    pattern: textInput().default('*').describe("Which names; * matches any characters: 'exec.*'"),
    limit: z.number().int().min(1).max(1_000).default(100).describe('The most controls'),
  },
  list: 'controls',
  row: z.object({ name: z.string(), description: z.string(), parameters: z.array(json) }),
  facts: { total: z.number().describe('Controls that match, also those beyond `limit`') },
  async run({ pattern, limit }, { consumer, signal }) {
    const { records } = await listOf(consumer, 'producer.controls', { match: pattern }, { limit: MAX_CONTROLS, signal })
    const rows = records.slice(0, limit).map(({ name, description, parameters }) => ({ name, description, parameters }))
    return { facts: { total: records.length }, rows }
  },
})

const result = {
  outcome: z.string().describe('ok, failed, timeout, unknown, refused or dry-run'),
  detail: z.string(),
  value: json.optional(),
}

export const proposeTool = defineTool({
  name: 'propose',
  title: 'Propose a control (dry run)',
  description:
    'Checks a control with its arguments: whether it exists, whether the rules allow it, and what its dry run says. Nothing is changed. If the outcome is dry-run, `submit` takes the `proposal` of the answer.',
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: true },
  input: {
    control: textInput(255).min(1).describe('A name as `controls` lists it'),
    arguments: argumentsInput.describe('Its arguments'),
    proposal: z
      .string()
      .regex(/^[\w-]{1,128}$/)
      .optional()
      .describe(
        'The proposal of an earlier answer with the same arguments, to learn by `submit` what has become of it',
      ),
  },
  list: 'next_steps',
  row: z.object({ tool: z.string(), arguments: z.record(z.string(), json) }),
  facts: { proposal: z.string().optional(), ...result },
  async run({ control, arguments: given, proposal }, { consumer, proposals, onBehalfOf, signal }) {
    const args = toArguments(given)
    const own = OWN_ARGUMENTS.find((name) => Object.hasOwn(args, name))
    if (own !== undefined) throw new RangeError(`the argument ${own} cannot be given: it is set for you`)
    const checked = await consumer.execute(
      control,
      { ...args, dry_run: true, on_behalf_of: onBehalfOf },
      {
        deadlineMs: RESULT_MS,
        signal,
      },
    )
    const outcome = controlOutcome(checked)
    if (outcome.outcome !== 'dry-run') return { facts: outcome, rows: [] }
    const { key } = proposals.add(control, args, proposal)
    return { facts: { proposal: key, ...outcome }, rows: [{ tool: 'submit', arguments: { proposal: key } }] }
  },
})

export const submitTool = defineTool({
  name: 'submit',
  title: 'Submit a proposed control',
  description:
    'Asks the server to run what was proposed, once. Where a rule wants an approval, it waits until somebody else approves it, and `state` says so; submit the same proposal again to learn what has become of it, which never runs it twice.',
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: true },
  input: { proposal: textInput(128).min(1).describe('The `proposal` of an answer of `propose`') },
  list: 'approvals',
  row: z.object({
    id: z.string(),
    role: z.string().describe('Whose users may approve it'),
    until: z.string().optional(),
  }),
  facts: {
    state: z.enum(['ended', 'running', 'waiting for approval']),
    proposal: z.string(),
    control: z.string(),
    outcome: result.outcome.optional(),
    detail: z.string().optional(),
    value: json.optional(),
  },
  async run({ proposal: key }, context) {
    const proposal = context.proposals.find(key)
    if (proposal === undefined)
      throw new RangeError('there is no such proposal here: `propose` it again, with this `proposal`')
    const { state, ended, approvals } = await submitted(proposal, context)
    const facts = { state, proposal: key, control: proposal.control, ...(ended && controlOutcome(ended)) }
    return { facts, rows: approvals }
  },
})

interface Submitted {
  readonly state: 'ended' | 'running' | 'waiting for approval'
  readonly ended?: Sample | undefined
  readonly approvals: readonly JsonObject[]
}

/** The result, if it comes in time; else whether it waits for approval. */
async function submitted(proposal: Proposal, context: ToolContext): Promise<Submitted> {
  const { key, control, args } = proposal
  const { consumer, onBehalfOf, signal } = context
  // Each EXECUTE that waits has a result to come on the channel, of which there may be only so many.
  const before = proposal.isSubmitted ? await waitingFor(consumer, key, signal) : []
  if (before.length > 0) return { state: 'waiting for approval', approvals: before }
  proposal.isSubmitted = true
  const all: Arguments = { ...args, idempotency_key: key, on_behalf_of: onBehalfOf }
  const running = consumer.execute(control, all, { deadlineMs: RESULT_MS, signal })
  const late = Symbol('late')
  // What it rejects with is reported below.
  const first = await Promise.race([running.catch(() => undefined), pause(PROMPT_MS, late, { ref: false })])
  const approvals = first === late ? await waitingFor(consumer, key, signal) : []
  if (approvals.length > 0) {
    running.catch(() => {})
    return { state: 'waiting for approval', approvals }
  }
  try {
    return { state: 'ended', ended: await running, approvals: [] }
  } catch (error) {
    if (!(error instanceof ConnectionError)) throw error
    if (error.code !== 'TIMEOUT') {
      const advice = 'it is not known whether it ran; submit the same proposal again, which does not run it twice'
      throw new Error(`${error.message}: ${advice}`, { cause: error })
    }
    const since = await waitingFor(consumer, key, signal)
    return { state: since.length > 0 ? 'waiting for approval' : 'running', approvals: since }
  }
}

/** What of `producer.approvals` has this key. Servers without approvals have no such metric. */
async function waitingFor(consumer: Consumer, key: string, signal: AbortSignal): Promise<JsonObject[]> {
  const next = ({ asked }: JsonObject) => ({ after: Number(asked) })
  const limit = MAX_CONTROLS
  const list = await ifReadable(listOf(consumer, 'producer.approvals', {}, { limit, next, signal }))
  const own = (list?.records ?? []).filter(({ args }) => Object(args)['idempotency_key'] === key)
  return own.map(({ id, role, until }) => {
    const time = isoTime(Number(until))
    return { id, role, ...(time !== undefined && { until: time }) }
  })
}

/** The result of a control: REC of `outcome`, `detail` and `value`. */
export function controlOutcome({ value }: Pick<Sample, 'value'>): { outcome: string; detail: string; value?: unknown } {
  const record = Object(valueToJson(value)) as JsonObject
  const { outcome = 'unknown', detail = '', value: brought } = record
  return {
    outcome: String(outcome),
    detail: String(detail),
    ...(brought !== undefined && brought !== null && { value: brought }),
  }
}
