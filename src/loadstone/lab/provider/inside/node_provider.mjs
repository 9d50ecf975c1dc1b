// An OpenID provider on loopback (npm: oidc-provider) with a login form.
// GET /seen gives what it has granted and how many requests it got, as JSON.
import { generateKeyPairSync, scrypt, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { Provider } from 'oidc-provider';
import MemoryAdapter from 'oidc-provider/lib/adapters/memory_adapter.js';
import LRU from 'oidc-provider/lib/helpers/lru.js';

const { CLIENT_ID, REDIRECT_URI, SECRET_FILE, USERS_FILE } = process.env;
const CLIENT_SECRET = readFileSync(SECRET_FILE, 'utf8').trim();
const port = Number(process.env.PORT);
// Memory and time of a hash: N of scrypt. Without it, passwords are compared as they are.
const cost = Number(process.env.SCRYPT_N ?? 0);
const salt = Buffer.alloc(16, 1);
const hash = (password) => promisify(scrypt)(password, salt, 32, { N: cost, r: 8, p: 1, maxmem: 256 * 8 * cost });
const stored = new Map();
for (const { username, password } of JSON.parse(readFileSync(USERS_FILE, 'utf8'))) {
  stored.set(username, cost ? await hash(password) : password);
}

async function isRight(name, password) {
  if (!stored.has(name)) return false;
  if (!cost) return stored.get(name) === password;
  return timingSafeEqual(await hash(password), stored.get(name));
}

// By default it keeps 1,000 entries, which the other sessions push out while a refresh waits.
const kept = new LRU({ maxSize: 50_000 });

const seen = {};
const count = (name) => { seen[name] = (seen[name] ?? 0) + 1; };
const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });

const provider = new Provider(`http://127.0.0.1:${port}`, {
  adapter: (model) => new MemoryAdapter(model, kept),
  clients: [{
    client_id: CLIENT_ID,
    client_secret: CLIENT_SECRET,
    redirect_uris: [REDIRECT_URI],
    grant_types: ['authorization_code', 'refresh_token', 'client_credentials'],
    response_types: ['code'],
    scope: 'openid',
  }],
  scopes: ['openid'],
  pkce: { required: () => true },
  rotateRefreshToken: true,
  cookies: { keys: ['of a lab'] },
  jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256', kid: '1' }] },
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    introspection: { enabled: true },
  },
  // Otherwise refresh tokens need a scope for which the user must consent.
  issueRefreshToken: async (ctx, client) => client.grantTypeAllowed('refresh_token'),
  findAccount: (ctx, sub) => (stored.has(sub)
    ? { accountId: sub, claims: async () => ({ sub }) } : undefined),
  interactions: { url: (ctx, interaction) => `/interaction/${interaction.uid}` },
  // Grants what is asked, so that no consent page comes.
  loadExistingGrant: async (ctx) => {
    const { client, session, provider: own } = ctx.oidc;
    const grant = new own.Grant({ clientId: client.clientId, accountId: session.accountId });
    grant.addOIDCScope([...ctx.oidc.requestParamScopes].join(' '));
    await grant.save();
    return grant;
  },
});
provider.on('grant.success', (ctx) => count(ctx.oidc.params.grant_type));

async function formOf(request) {
  let body = '';
  for await (const chunk of request) body += chunk;
  return new URLSearchParams(body);
}

function page(path, message) {
  return `<p>${message}</p><form method="post" action="${path}">
    <input type="hidden" name="prompt" value="login &amp; more">
    <input name="username"><input type="password" name="password"><button>Log in</button></form>`;
}

async function interaction(ctx) {
  ctx.type = 'html';
  if (ctx.method === 'GET') {
    await provider.interactionDetails(ctx.req, ctx.res);
    ctx.body = page(ctx.path, '');
    return;
  }
  const form = await formOf(ctx.req);
  const name = form.get('username');
  if (form.get('prompt') !== 'login & more' || !await isRight(name, form.get('password') ?? '')) {
    count('wrong_password');
    ctx.body = page(ctx.path, 'Wrong name or password.');
    return;
  }
  count('login');
  ctx.respond = false;
  const result = { login: { accountId: name } };
  await provider.interactionFinished(ctx.req, ctx.res, result, { mergeWithLastSubmission: false });
}

provider.use(async (ctx, next) => {
  if (ctx.path === '/seen') {
    ctx.body = seen;
    return;
  }
  count('requests');
  if (ctx.path.startsWith('/interaction/')) await interaction(ctx);
  else await next();
  if (ctx.path === '/token/introspection' && ctx.body?.active) count('introspection');
  if (ctx.path === '/me' && ctx.status === 200) count('userinfo');
});
provider.listen(port, '127.0.0.1', () => console.log('ready', port));
