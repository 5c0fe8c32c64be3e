/** `explain`: why the identity of the token, or another user, may or may not do something. */
import { z } from 'zod'
import { type Arguments, type Consumer, StatusError } from '../../../client/index.ts'
import { type JsonObject, listOf } from '../answer.ts'
import { argumentsInput, defineTool, READING, type ToolContext, textInput, toArguments } from '../tool.ts'
import { controlOutcome } from './controls.ts'

/** Connections of one user that are looked at. */
const MAX_CONNECTIONS = 1_000

export const explainTool = defineTool({
  name: 'explain',
  title: 'Explain a right',
  description:
    'Says whether a user may do something, and why: by default the user of this token, for whom it is also tried out, so that the scope of the token counts. Which rule decides is said if this token may run role.explain.',
  annotations: READING,
  input: {
    command: z
      .enum(['COLLECT', 'EXECUTE', 'DEF_CHANNEL', 'PUBLISH'])
      .describe(
        'COLLECT: read a metric; EXECUTE: run a control; DEF_CHANNEL: have a destination dialled; PUBLISH: publish values',
      ),
    object: textInput().min(1).describe('The metric, control or destination'),
    arguments: argumentsInput.describe('Arguments of the call, which rules may name'),
    user: textInput(200).optional().describe('user or tenant/user; the user of this token if it is left out'),
  },
  list: 'answers',
  row: z.object({
    from: z
      .enum(['trial', 'rules'])
      .describe('trial: what the server answers to this token now; rules: what role.explain says'),
    allowed: z.boolean().optional().describe('Left out where that cannot be said'),
    because: z.string(),
  }),
  facts: { identity: z.string().describe('Whom it is about'), allowed: z.boolean().optional() },
  async run({ command, object, arguments: given, user }, context) {
    const own = await ownIdentity(context)
    const identity = user ?? own
    const args = toArguments(given)
    const isOwn = identity === own || identity === `default/${own}`
    const trial = isOwn ? await tried(command, object, args, context) : undefined
    const rules = await byRules(identity, { command, object, args }, context)
    const answers = [...(trial === undefined ? [] : [trial]), rules]
    const known = answers.find(({ allowed }) => allowed !== undefined)
    return { facts: { identity, ...(known && { allowed: known.allowed }) }, rows: answers }
  },
})

type Answer = { from: 'trial' | 'rules'; allowed?: boolean; because: string }

/** The user of the token, as `tenant/user`, or `user` of the tenant `default`. */
async function ownIdentity({ consumer, signal }: Pick<ToolContext, 'consumer' | 'signal'>): Promise<string> {
  const next = ({ channel }: JsonObject) => ({ after: Number(channel) })
  const { records } = await listOf(consumer, 'producer.connections', {}, { limit: MAX_CONNECTIONS, next, signal })
  return String(records.find(({ channel }) => channel === consumer.channel)?.['identity'] ?? '')
}

/** Only what changes nothing can be tried. */
async function tried(
  command: string,
  object: string,
  args: Arguments,
  { consumer, onBehalfOf, signal }: ToolContext,
): Promise<Answer | undefined> {
  try {
    if (command === 'COLLECT') return await collected(consumer, object, args, signal)
    if (command !== 'EXECUTE') return undefined
    const { detail } = controlOutcome(
      await consumer.execute(object, { ...args, dry_run: true, on_behalf_of: onBehalfOf }, { signal }),
    )
    return { from: 'trial', allowed: true, because: `a dry run was accepted${detail === '' ? '' : `: ${detail}`}` }
  } catch (error) {
    if (!(error instanceof StatusError)) throw error
    const { status, message } = error
    const isDenied = ['PERMISSION_DENIED', 'NO_SUCH_METRIC', 'NO_SUCH_CONTROL'].includes(String(status))
    return { from: 'trial', ...(isDenied && { allowed: false }), because: message }
  }
}

async function collected(consumer: Consumer, metric: string, args: Arguments, signal: AbortSignal): Promise<Answer> {
  const id = await consumer.collect(metric, args, { signal })
  // It is bound nowhere, and so nothing of it stays.
  await consumer.stop(id)
  const because = metric.includes('*')
    ? 'COLLECT was accepted; of a pattern, only what may be read matches'
    : 'COLLECT was accepted'
  return { from: 'trial', allowed: true, because }
}

interface Call {
  readonly command: string
  readonly object: string
  readonly args: Arguments
}

async function byRules(
  user: string,
  { command, object, args }: Call,
  { consumer, onBehalfOf, signal }: ToolContext,
): Promise<Answer> {
  const where = Object.entries(args).map(([name, value]) => `${name}=${value}`)
  const spaced = where.find((one) => /\s/.test(one))
  if (spaced !== undefined)
    return { from: 'rules', because: `not asked: "${spaced}" contains a space, which role.explain does not take` }
  try {
    const asked = {
      user,
      command,
      object,
      ...(where.length > 0 && { where: where.join(' ') }),
      on_behalf_of: onBehalfOf,
    }
    const { outcome, detail, value } = controlOutcome(await consumer.execute('role.explain', asked, { signal }))
    if (outcome !== 'ok') return { from: 'rules', because: detail }
    const { allowed, because } = Object(value) as JsonObject
    return { from: 'rules', allowed: allowed === true, because: String(because) }
  } catch (error) {
    if (!(error instanceof StatusError)) throw error
    const isDenied = ['PERMISSION_DENIED', 'NO_SUCH_CONTROL'].includes(String(error.status))
    const advice =
      'this token may not run role.explain; an admin can allow it: `cinnabar role allow ROLE EXECUTE role.explain`'
    return { from: 'rules', because: isDenied ? advice : error.message }
  }
}
