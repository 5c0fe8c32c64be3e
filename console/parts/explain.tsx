/** Why somebody may do something, or may not: `role.explain` as a form. */
import type { Consumer, PlainRecord } from '../../client/browser.ts'
import { ControlForm } from './control-form.tsx'
import { useListing, userOf } from './listing.ts'
import { State, Unreadable } from './state.tsx'

interface ExplainProps {
  readonly consumer: Consumer
}

export function Explain({ consumer }: ExplainProps) {
  const listing = useListing(consumer, 'role', { isListed: false })
  const users = useListing(consumer, 'user')
  const control = listing.controls.get('role.explain')
  if (listing.refusal !== undefined) return <Unreadable what="rules" refusal={listing.refusal} />
  if (listing.isKnown && control === undefined) return <p class="empty">Your role may not ask what others may do.</p>
  if (control === undefined) return null
  return (
    <section class="card" aria-label="Explain">
      <ControlForm
        consumer={consumer}
        control={control}
        label="Explain"
        offers={{ user: { texts: (users.records ?? []).map(userOf), others: 'typed' } }}
        result={({ value }) => {
          const { allowed, because } = (value ?? {}) as PlainRecord
          return (
            <p class="padded verdict">
              <State
                look={allowed === true ? 'good' : 'attention'}
                text={allowed === true ? 'Allowed' : 'Not allowed'}
                detail={String(because ?? '')}
              />
            </p>
          )
        }}
      />
    </section>
  )
}
