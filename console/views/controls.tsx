/** What this user may execute: a list by families, and for each control a form that is made of its parameters. */
import type { Consumer } from '../../client/browser.ts'
import { ApprovalList } from '../parts/approval-list.tsx'
import { ControlForm } from '../parts/control-form.tsx'
import { type Control, controlOf, shownArguments, type Texts } from '../parts/control-parameters.ts'
import { Name } from '../parts/name.tsx'
import { useRoleOffers } from '../parts/roles.ts'
import { Search } from '../parts/search.tsx'
import { Loading } from '../parts/state.tsx'
import { Table } from '../parts/table.tsx'
import { producersOf } from '../producers.ts'
import { hasMore, recordsOf, useQuery } from '../query.ts'
import { linkTo, type Router, type ViewProps } from '../route.ts'
import type { WaitingApprovals } from '../waiting-approvals.ts'

const TYPING_MS = 150

/** No control has such a name. */
const APPROVALS = 'approvals'

/** The page of the view besides the list and the controls, with its title. */
export const CONTROL_PAGES: ReadonlyMap<string, string> = new Map([[APPROVALS, 'Approvals']])

export function ControlsView(props: ViewProps) {
  const { consumer, router, approvals } = props
  const { object, args } = router.route.value
  if (object === APPROVALS) {
    return (
      <>
        <header>
          <h1>Approvals</h1>
          <Tabs approvals={approvals} shown={APPROVALS} />
        </header>
        <ApprovalList {...props} />
      </>
    )
  }
  return object === '' ? (
    <List consumer={consumer} router={router} approvals={approvals} text={args.get('match') ?? ''} />
  ) : (
    <Detail key={object} consumer={consumer} approvals={approvals} name={object} />
  )
}

function Tabs({ approvals, shown = '' }: { readonly approvals: WaitingApprovals; readonly shown?: string }) {
  const { length: count } = approvals.waiting.value ?? []
  return (
    <nav class="choices tabs" aria-label="Controls">
      <a href={linkTo('controls')} aria-current={shown === '' ? 'page' : undefined}>
        Controls
      </a>
      <a href={linkTo('controls', APPROVALS)} aria-current={shown === APPROVALS ? 'page' : undefined}>
        Approvals{count === 0 ? '' : ` ${count}`}
      </a>
    </nav>
  )
}

interface ListProps {
  readonly consumer: Consumer
  readonly router: Router
  readonly approvals: WaitingApprovals
  readonly text: string
}

function List({ consumer, router, approvals, text }: ListProps) {
  const match = text.includes('*') ? text : `*${text}*`
  const answer = useQuery(consumer, 'producer.controls', { match }, { delayMs: text === '' ? 0 : TYPING_MS })
  const plain = answer.kind === 'answer' ? answer.sample.plain : []
  const controls = recordsOf(plain).map(controlOf)
  const families = [...new Set(controls.map(({ name }) => familyOf(name)))]
  return (
    <>
      <header>
        <h1>Controls</h1>
        <Tabs approvals={approvals} />
        {answer.kind === 'answer' ? (
          <p class="note">
            {controls.length}
            {hasMore(plain) ? ' and more: search for those that you need' : ''}
          </p>
        ) : null}
        <Search
          label="Search controls"
          placeholder="Part of a name, or a pattern with *"
          text={text}
          onText={(value) => router.replace(linkTo('controls', '', value === '' ? {} : { match: value }))}
        />
      </header>
      {answer.kind === 'refused' ? (
        <p class="banner" role="alert">
          {answer.reason}
        </p>
      ) : null}
      {answer.kind === 'waiting' ? <Loading what="the controls" /> : null}
      {answer.kind === 'answer' && controls.length === 0 ? (
        <p class="empty">{text === '' ? 'Your role may not run any control.' : `No control matches ${text}.`}</p>
      ) : null}
      {families.map((family) => (
        <Family key={family} name={family} controls={controls.filter(({ name }) => familyOf(name) === family)} />
      ))}
    </>
  )
}

function Family({ name: family, controls }: { readonly name: string; readonly controls: readonly Control[] }) {
  return (
    <section class="card" aria-label={family}>
      <div class="head">
        <h2 class="code">
          <Name text={family} />
        </h2>
        <p class="note">{controls.length}</p>
      </div>
      <Table
        look="controls"
        rows={controls}
        keyOf={({ name }) => name}
        columns={[
          {
            cellLook: 'code',
            cell: ({ name }) => (
              <a href={linkTo('controls', name)}>
                <Name text={name.slice(family.length + 1)} />
              </a>
            ),
          },
          { cell: ({ description }) => <bdi>{description}</bdi> },
        ]}
      />
    </section>
  )
}

/** All but the last word of a name: that of `qmf.org.apache.qpid.broker.queue.purge` is the class. */
function familyOf(name: string): string {
  return name.slice(0, Math.max(name.indexOf('.'), name.startsWith('qmf.') ? name.lastIndexOf('.') : 0))
}

interface DetailProps {
  readonly consumer: Consumer
  readonly approvals: WaitingApprovals
  readonly name: string
}

function Detail({ consumer, approvals, name }: DetailProps) {
  const answer = useQuery(consumer, 'producer.controls', { match: name })
  if (answer.kind === 'waiting') return <Loading what="the control" />
  const found = answer.kind === 'answer' ? recordsOf(answer.sample.plain).map(controlOf) : []
  const control: Control | undefined = found.find((one) => one.name === name)
  if (control === undefined) {
    return (
      <p class="empty" role="alert">
        {answer.kind === 'refused' ? `${answer.reason} ` : ''}There is no control <Name text={name} />, or your role may
        not run it. <a href={linkTo('controls')}>All controls</a>
      </p>
    )
  }
  return (
    <>
      <header>
        <h1 class="code">
          <Name text={control.name} />
        </h1>
      </header>
      <p>
        <bdi>{control.description}</bdi>
      </p>
      {control.approvers.length === 0 ? null : (
        <p class="note">
          A run may have to wait until a user of the role <bdi class="code">{control.approvers.join(' or ')}</bdi>{' '}
          approves it. A dry run does not.
        </p>
      )}
      <section class="card" aria-label="Run">
        <Run consumer={consumer} control={control} />
        <OwnWaiting approvals={approvals} control={control.name} />
      </section>
    </>
  )
}

/** Why what was run has no result yet. */
function OwnWaiting({ approvals, control }: { readonly approvals: WaitingApprovals; readonly control: string }) {
  const own = approvals.waiting.value?.filter((one) => one.isOwn && one.control === control) ?? []
  return (
    <p class={own.length === 0 ? 'unseen' : 'padded'} role="status">
      {own.length === 0 ? null : (
        <>
          {own.length === 1 ? 'One run' : `${own.length} runs`} that you have asked for{' '}
          {own.length === 1 ? 'waits' : 'wait'} for <a href={linkTo('controls', APPROVALS)}>approval</a>.
        </>
      )}
    </p>
  )
}

interface RunProps {
  readonly consumer: Consumer
  readonly control: Control
}

function Run({ consumer, control }: RunProps) {
  const offers = useRoleOffers(consumer, control)
  const { name: server } = producersOf(consumer)
  return (
    <ControlForm
      consumer={consumer}
      control={control}
      offers={offers}
      question={() => `Run ${control.name} on the server ${server}?`}
      details={(texts) => <ArgumentList control={control} texts={texts} />}
      hasDryRun={true}
    />
  )
}

function ArgumentList({ control: { parameters }, texts }: { readonly control: Control; readonly texts: Texts }) {
  const given = shownArguments(parameters, texts)
  if (given.length === 0) return <p class="note">{parameters.length === 0 ? '' : 'Without arguments.'}</p>
  return (
    <dl class="arguments">
      {given.map(([name, text]) => (
        <div key={name}>
          <dt class="code">{name}</dt>
          <dd>
            <bdi>{text}</bdi>
          </dd>
        </div>
      ))}
    </dl>
  )
}
