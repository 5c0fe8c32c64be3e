/** Tokens: those that there are, and new ones, which are made in the page and shown once. */
import { useState } from 'preact/hooks'
import { type Consumer, newToken } from '../../client/browser.ts'
import { AccessList, Fold, named, offersOf, textOf, userOf } from '../parts/access-list.tsx'
import { Action } from '../parts/action.tsx'
import { ControlForm } from '../parts/control-form.tsx'
import type { Control } from '../parts/control-parameters.ts'
import { useListing } from '../parts/listing.ts'
import { Name } from '../parts/name.tsx'
import { formatUtc } from '../units.ts'

export function Tokens({ consumer }: { readonly consumer: Consumer }) {
  const listing = useListing(consumer, 'token')
  const users = useListing(consumer, 'user')
  const control = listing.controls.get('token.add')
  return (
    <>
      <AccessList
        listing={listing}
        what="tokens"
        heads={['Token', 'User', 'For', 'Expires', '']}
        searched={(one) => [userOf(one), textOf(one, 'name'), textOf(one, 'scope')].join(' ')}
        row={(one) => (
          <tr key={String(one['token'])}>
            <td class="code">{String(one['token'])}</td>
            <td class="code">
              <Name text={userOf(one)} />
            </td>
            <td class="whole">
              <Name text={textOf(one, 'name')} />
              <small class="more">
                <bdi>{textOf(one, 'scope') || 'everything that its user may do'}</bdi>
              </small>
            </td>
            <td>{Number(one['expires']) === 0 ? 'never' : <Day time={Number(one['expires'])} />}</td>
            <td class="does">
              <Action
                consumer={consumer}
                label="Revoke"
                object={`token ${String(one['token'])}`}
                control="token.revoke"
                args={{ token: Number(one['token']) }}
                question={`Revoke token ${String(one['token'])} of ${userOf(one)}? Sessions that were opened with it end within a second.`}
                onDone={listing.reload}
              />
            </td>
          </tr>
        )}
      />
      {control === undefined ? null : (
        <NewToken consumer={consumer} control={control} offers={offersOf(users.records, [])} onMade={listing.reload} />
      )}
    </>
  )
}

function Day({ time }: { readonly time: number }) {
  return <time title={formatUtc(time)}>{new Date(time / 1000).toLocaleDateString('sv')}</time>
}

interface NewTokenProps {
  readonly consumer: Consumer
  readonly control: Control
  readonly offers: Readonly<Record<string, readonly string[]>>
  readonly onMade: () => void
}

/** The token is made in this page, and the server gets its hash only: it is shown once, and nobody can show it again. */
function NewToken({ consumer, control, offers, onMade }: NewTokenProps) {
  const [made, setMade] = useState('')
  const [isValid, setValid] = useState(false)
  return (
    <Fold title="Make a token">
      {isValid ? (
        <div class="padded token" role="status">
          <p>This is the token. It is shown only now: nobody can show it again.</p>
          <p>
            <code>{made}</code>
          </p>
          <div class="buttons">
            <button type="button" class="first" onClick={() => void navigator.clipboard.writeText(made)}>
              Copy
            </button>
            <button
              type="button"
              onClick={() => {
                setMade('')
                setValid(false)
              }}
            >
              I have stored it
            </button>
          </div>
        </div>
      ) : (
        <ControlForm
          consumer={consumer}
          control={control}
          given={{ hash: '' }}
          label="Make"
          offers={offers}
          question={(texts) => `Make a token for ${named(texts)}? Whoever has it can log in as that user.`}
          made={async () => {
            const { token, hash } = await newToken()
            setMade(token)
            return { hash }
          }}
          onEnd={({ outcome }) => {
            setValid(outcome === 'ok')
            onMade()
          }}
        />
      )}
    </Fold>
  )
}
