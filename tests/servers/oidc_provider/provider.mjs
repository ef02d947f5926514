// A provider with one client: node provider.mjs PORT REDIRECT_URI. Whoever types a name is that person, with any password.
import Provider from 'oidc-provider'

const [port, redirect] = process.argv.slice(2)
const GROUPS = { ada: ['staff', 'crm-admins'], vera: ['staff'], eve: ['visitors'] }
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [{ client_id: 'threadline', client_secret: 'a secret of the client, %+&=', redirect_uris: [redirect] }],
  claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['groups'] },
  cookies: { keys: ['of these tests'] },
  findAccount: (ctx, id) => ({
    accountId: id,
    claims: () => ({ sub: id, email: `${id}@example.com`, email_verified: true, groups: GROUPS[id] ?? [] }),
  }),
  pkce: { required: () => true },
})
provider.listen(Number(port), '127.0.0.1', () => console.log('ready'))
