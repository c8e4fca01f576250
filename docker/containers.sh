#!/bin/bash
# Runs docker/compose.yaml in a Docker engine of its own, on a machine that reaches Debian's packages and
# those of Python and Maven, but no registry of images: base images are made of Debian's packages.
#   docker/containers.sh test          the whole scenario (make containers), then removes what it started
#   docker/containers.sh up | down     starts all and waits until it is healthy; ends all
#   docker/containers.sh exec CMD...   runs CMD in the engine's network and process namespaces
# Debian 12, root. 6 to 8 minutes the first time, a minute or two later. CONTAINERS_DIR
# (/tmp/ldpstream-containers) keeps the images, 2 GB, and may be deleted when nothing runs.
#
# Where a machine cannot run it, `test` says why and exits 0, or 1 with LDPSTREAM_REQUIRE_CONTAINERS=1.
# What the project's own files cause always exits 1.
#
# Published ports are those of a network namespace: they meet no other program's, and the machine's routes
# and firewall stay as they are. What differs from production: Debian's Python, Java 17 and Prometheus 2.42
# under the images' names; of Kafka's image the jars and the start script; no Grafana, which Debian lacks.
set -euo pipefail
umask 022 # containers read what is made here as other users
REPO=$(readlink -f "$(dirname "$0")/..")
SELF=$REPO/docker/containers.sh
COMPOSE=$REPO/docker/compose.yaml
PROJECT=$(sed -n 's/^name: *//p' "$COMPOSE")
DIR=$(readlink -m "${CONTAINERS_DIR:-/tmp/ldpstream-containers}")
PREPARE_SECONDS=${CONTAINERS_PREPARE:-1200} # packages, engine, base images, dependencies
HEALTHY_SECONDS=${CONTAINERS_WAIT:-600}     # from the start of the containers until all are healthy
SCENARIO_SECONDS=600
CANNOT=3 # exit code: this machine cannot run containers
export ENGINE=$DIR/engine KAFKA=$DIR/kafka GROUP=ldpstream-containers TMPDIR=$DIR/tmp
export DOCKER_HOST=unix://$DIR/engine/docker.sock DOCKER_CONFIG=$DIR DOCKER_BUILDKIT=0 # Debian has no buildx

say() { echo "containers: $*"; }
cannot() { say "not run: $*"; exit $CANNOT; }
docker() { /usr/bin/docker "$@"; } # Debian's, as old as its engine
logged() { "${@:2}" > "$DIR/$1.log" 2>&1 || { tail -40 "$DIR/$1.log"; return 1; }; }
image() { sed -nE "s#^ *(image:|FROM) ($1[^ @]*).*#\2#p" "$COMPOSE" "$REPO/docker/Dockerfile" | head -1; }
compose() {
  timeout --foreground "${LIMIT:-0}" docker-compose -p "$PROJECT" --project-directory "$REPO/docker" -f "$DIR/compose.yaml" "$@"
}
alive() { [ -s "$ENGINE/$1.pid" ] && grep -qs "$ENGINE" "/proc/$(cat "$ENGINE/$1.pid")/cmdline"; } # no other's, after a reboot

why_not() { # prints why this machine cannot run an engine; nothing if it may
  [ "$(id -u)" = 0 ] || { echo "it needs root"; return; }
  [ "$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)" = bookworm ] || { echo "it needs Debian 12 (bookworm)"; return; }
  [ "$(df --output=avail -B1G "$(dirname "$DIR")" | tail -1)" -ge 8 ] || { echo "$(dirname "$DIR") has no 8 GB left"; return; }
  [ -c /dev/net/tun ] || { echo "there is no /dev/net/tun"; return; }
  unshare -m -p -n --fork --propagation slave mount -t tmpfs none /mnt 2> /dev/null || echo "it may not make namespaces and mounts"
}

packages() { # with an archive folder of their own: other programs empty the machine's, or lock it
  local all=(docker.io docker-compose containerd runc iptables iproute2 slirp4netns mmdebstrap maven make python3) apt
  [ "$(dpkg-query -W -f '${db:Status-Status}\n' "${all[@]}" 2> /dev/null | grep -cx installed)" -lt ${#all[@]} ] || return 0
  say "installing packages"
  apt=(apt-get -qy -o Dir::Cache::archives="$DIR/archives" -o DPkg::Lock::Timeout=600)
  logged update "${apt[@]}" update || say "continuing with the package lists that are there"
  DEBIAN_FRONTEND=noninteractive logged install "${apt[@]}" install --no-install-recommends --no-upgrade "${all[@]}"
}

engine() {
  alive init && alive net && docker info > /dev/null 2>&1 && return 0
  stop_engine
  cat > "$ENGINE/engine.sh" << 'X'
# The first process of a process namespace: when it ends, the kernel ends all that it started.
read -r pid _ < /proc/self/stat; echo "$pid" > "$ENGINE/init.pid" # as seen from outside: /proc is still the machine's
unshare -n bash -c 'read -r pid _ < /proc/self/stat; echo "$pid" > "$0/net.pid"; while :; do sleep 999; done' "$ENGINE" & net=$!
until [ -s "$ENGINE/net.pid" ]; do sleep 0.1; done
mount -t proc proc /proc
for d in /run/{containerd,docker} /etc/docker /opt/containerd; do mkdir -p $d; mount -t tmpfs none $d; done
nsenter -n -t "$net" ip link set lo up
slirp4netns --configure --mtu=1500 --disable-host-loopback "$net" tap0 &
until nsenter -n -t "$net" ip route | grep -q default; do sleep 0.1; done
# 10.0.2.3: slirp4netns's name server. 0: short of memory, the kernel must not spare this engine before other programs.
nsenter -n -t "$net" dockerd --data-root "$ENGINE/data" --exec-root "$ENGINE/exec" --pidfile "$ENGINE/dockerd.pid" -H "$DOCKER_HOST" \
  --storage-driver overlay2 --oom-score-adjust 0 --cgroup-parent "/$GROUP" --dns 10.0.2.3 & engine=$!
trap 'kill $engine' TERM
until wait $engine; [ ! -e "/proc/$engine" ]; do :; done # a trap ends a wait
X
  # Lock and output stay with the caller: whoever waits for their end need not wait for the engine.
  setsid unshare -m -p --fork --propagation slave bash "$ENGINE/engine.sh" < /dev/null > "$DIR/engine.log" 2>&1 9>&- &
  for _ in $(seq 120); do docker info > /dev/null 2>&1 && return 0; sleep 1; done
  tail -20 "$DIR/engine.log"
  stop_engine
  return 1
}

processes() { grep -alsF -f <(echo "$ENGINE") /proc/[0-9]*/cmdline || true; }

stop_engine() {
  ! alive init || kill -TERM "$(cat "$ENGINE/init.pid")"
  for i in $(seq 60); do alive init || break; sleep 0.5; [ "$i" -lt 60 ] || kill -KILL "$(cat "$ENGINE/init.pid")"; done
  rm -rf "$ENGINE"/{*.pid,docker.sock,exec}
  for i in $(seq 150); do # the kernel takes the other processes away after the first; a group can be removed after its last one
    find /sys/fs/cgroup -depth -type d -path "*/$GROUP*" -exec rmdir {} + 2> /dev/null || true
    [ -n "$(find /sys/fs/cgroup -type d -name "$GROUP" 2> /dev/null)$(processes)" ] || break
    sleep 0.2
  done
}

base() { # NAME PACKAGES HOOK CHANGE...: makes an image of Debian's packages, from wherever this machine's apt has them
  local name=$1 include=$2 hook=$3 change=() id
  ! docker image inspect "$name" > /dev/null 2>&1 || return 0
  say "making $name"
  for id in "${@:4}"; do change+=(-c "$id"); done
  apt-get indextargets --format "deb \$(REPO_URI) \$(RELEASE) \$(COMPONENT)" 'Created-By: Packages' 'Origin: Debian' > "$DIR/sources.list"
  apt-config dump | grep -E '^Acquire::(https?|Check|Retries)' > "$DIR/apt.conf" || true # proxies and the like
  id=$(mmdebstrap --quiet --mode=root --variant=minbase --include="$include" --aptopt="$DIR/apt.conf" --customize-hook="$hook" \
    --keyring=/usr/share/keyrings/debian-archive-keyring.gpg bookworm - "$DIR/sources.list" | docker import "${change[@]}" -)
  docker tag "$id" "$name" # only now that mmdebstrap has ended well
}

# shellcheck disable=SC2016 # what is quoted is for the shells of mmdebstrap and of the containers
bases() { # under the names that docker/ gives
  local pip cert kafka bin=$KAFKA/opt/kafka/bin etc=$KAFKA/etc/kafka/docker libs=$KAFKA/opt/kafka/libs
  base ldpstream-containers-python ca-certificates,netbase,tzdata,python3,python3-venv,python-is-python3 true
  # pip's settings on this machine (index, proxy, certificates) hold in the build, too.
  pip=$(python3 -m pip config list 2> /dev/null | sed -n "s/^[a-z:]*\.\([a-z-]*\)='\(.*\)'$/\1 = \2/p" | awk '!seen[$1]++') || pip=
  cert=$(sed -n 's/^cert = //p' <<< "$pip")
  pip=$(grep -v ' = /' <<< "$pip" || true) # without folders of this machine
  mkdir -p "$DIR/python"; chmod 700 "$DIR/python" # an index's address may hold a password
  cp "${cert:-/etc/ssl/certs/ca-certificates.crt}" "$DIR/python/certificates.crt"
  printf '%s\n' '[global]' "$pip" 'cert = /etc/ssl/certs/ca-certificates.crt' > "$DIR/python/pip.conf"
  printf '%s\n' 'FROM ldpstream-containers-python' 'COPY pip.conf /etc/' 'COPY certificates.crt /etc/ssl/certs/ca-certificates.crt' > "$DIR/python/Dockerfile"
  logged python docker build -t "$(image python:)" "$DIR/python"
  kafka=$(image apache/kafka:)
  if ! docker image inspect "$kafka" > /dev/null 2>&1; then
    rm -rf "$KAFKA"; mkdir -p "$bin" "$etc" "$KAFKA"/{etc/kafka/secrets,opt/kafka/config,var/lib/kafka/data,mnt/shared/config}
    logged jars mvn -q -B -f "$REPO/docker/kafka/pom.xml" dependency:copy-dependencies -DoutputDirectory="$libs"
    # As the image's own: properties from /mnt/shared/config, storage formatted on the first start.
    printf '%s\n' '#!/bin/bash' 'export CLUSTER_ID=${CLUSTER_ID:-5L6g3nShT-eMCtK--X86sw}; cd /opt/kafka' \
      'dirs="--default-configs-dir /etc/kafka/docker --mounted-configs-dir /mnt/shared/config --final-configs-dir config"' \
      'out=$(java -Xmx256M kafka.docker.KafkaDockerWrapper setup $dirs 2>&1) || [[ $out == *"already formatted"* ]] ||' \
      '  { echo "$out"; exit 1; }' 'exec java -Xmx1G -Xms1G kafka.Kafka config/server.properties' > "$etc/run"
    echo '{}' | tee "$etc"/{log4j2,tools-log4j2}.yaml > "$etc/server.properties" # the wrapper asks for all three
    chmod +x "$etc/run"
    base "$kafka" openjdk-17-jre-headless 'cp -a "$KAFKA/." "$1/"; chroot "$1" useradd -m -u 1000 appuser
      chroot "$1" chown -R appuser /opt/kafka /mnt/shared /var/lib/kafka /etc/kafka' 'ENV CLASSPATH=/opt/kafka/libs/* LOG4J_LEVEL=WARN' \
      'USER appuser' 'VOLUME ["/etc/kafka/secrets", "/var/lib/kafka/data", "/mnt/shared/config"]' 'CMD ["/etc/kafka/docker/run"]'
  fi
  base "$(image prom/)" prometheus,busybox 'ln -s busybox "$1/bin/wget"; install -d -o 65534 -g 65534 "$1/prometheus"' \
    'USER nobody' 'WORKDIR /prometheus' 'VOLUME ["/prometheus"]' 'ENTRYPOINT ["/usr/bin/prometheus"]'
}

build() { # TARGET NAME: up to a stage of docker/Dockerfile
  local args=() v
  for v in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do [ -z "${!v:-}" ] || args+=(--build-arg "$v=${!v}"); done
  logged "build-$2" docker build "${args[@]}" -f "$REPO/docker/Dockerfile" ${1:+--target "$1"} -t "$2" "$REPO"
}

prepare() { # all that needs the network: what fails here is the machine's
  local version
  what="the folder $DIR" # of the whole process: its trap sees no function's own
  trap '[ $? = 0 ] || say "not run: it failed at $what"' EXIT
  version=$(cat "$SELF" "$REPO/docker/kafka/pom.xml" | sha256sum)
  if [ -e "$DIR/version" ] && [ "$(cat "$DIR/version")" != "$version" ]; then # images as another release of this file made them
    stop_engine
    rm -rf "$DIR"/{engine,kafka}
  fi
  mkdir -p "$ENGINE" "$DIR"/{tmp,archives/partial}
  echo "$version" > "$DIR/version"
  what="installing Debian's packages"; packages
  touch "$DIR/up"
  what="starting the engine"; engine
  what="making the base images"; bases
  what="installing constraints-base.txt"; say "$what"; build dependencies ldpstream-dependencies
  trap - EXIT
}

unhealthy() { # the services that do not run, or whose health check has not succeeded
  docker ps -aq --filter "label=com.docker.compose.project=$PROJECT" | xargs -r /usr/bin/docker inspect -f \
    '{{index .Config.Labels "com.docker.compose.service"}} {{.State.Status}} {{with .State.Health}}{{.Status}}{{end}}' |
    sed -nE 's/ running (healthy)?$//p' | grep -vxFf - <(printf '%s\n' "${services[@]}") || true
}

start() {
  local v end begun=$SECONDS
  grep -v '^name:' "$COMPOSE" > "$DIR/compose.yaml" # docker-compose 1.29 knows neither name: nor --wait
  make -s -C "$REPO" readable
  mapfile -t services < <(compose config --services | grep -vx grafana)
  say "building"
  build '' ldpstream
  docker image prune -f > /dev/null
  say "starting"
  end=$((SECONDS + HEALTHY_SECONDS))
  # docker-compose gives up on a dependency that is unhealthy, which may pass on a slow machine, and waits for ever
  # for one that only restarts: so it is tried again, and ended in time.
  while v=$((end - SECONDS)); [ $v -gt 0 ] && ! LIMIT=$v logged up compose up -d --no-build "${services[@]}"; do
    say "docker-compose up failed; again"; sleep 10
  done
  while v=$(unhealthy); [ -n "$v" ] && [ $SECONDS -lt $end ]; do sleep 1; done
  if [ -n "$v" ]; then
    compose ps
    # shellcheck disable=SC2086 # several names
    compose logs --no-color --tail=60 $v
    say "failed: not healthy in $HEALTHY_SECONDS seconds: ${v//$'\n'/, }"
    return 1
  fi
  say "healthy: ${#services[@]} services, $((SECONDS - begun)) s with the build"
}

down() { # an engine that was killed comes back, to remove what it had
  [ -e "$DIR/up" ] || return 0
  if [ -e "$DIR/compose.yaml" ]; then
    engine
    logged down compose down -v --remove-orphans
    local left
    left=$(docker ps -aq; docker volume ls -q; docker network ls --format '{{.Name}}' | grep -vxE 'bridge|host|none' || true)
    [ -z "$left" ] || { say "failed: left in the engine: ${left//$'\n'/, }"; return 1; }
  fi
  stop_engine
  rm -f "$DIR/up"
}

outside() { # what of the machine an engine might leave changed, or behind
  grep -F "$DIR" /proc/mounts || true
  find /sys/fs/cgroup -type d -name "$GROUP*" 2> /dev/null
  ls /sys/class/net
  processes
}

scenario() { # in the engine's namespaces, so that published ports are reached and processes can be killed
  nsenter -n -p -t "$(cat "$ENGINE/net.pid")" timeout $SCENARIO_SECONDS python3 "$REPO/tests/ops/containers.py" "$REPO/docker"
}

run_test() { # each step is a process of its own: bash ends none of them at its first error otherwise
  local reason before after begun=$SECONDS
  reason=$(why_not)
  [ -z "$reason" ] || cannot "$reason"
  mkdir -p "$DIR"
  exec 9> "$DIR/lock"
  flock -w "$PREPARE_SECONDS" 9 || cannot "another run has held $DIR/lock for $PREPARE_SECONDS s"
  "$SELF" down 9>&- || true # what an interrupted run has left
  before=$(outside)
  trap '"$SELF" down 9>&- > /dev/null || true' EXIT
  timeout -k 30 "$PREPARE_SECONDS" "$SELF" prepare 9>&- || cannot "it could not be prepared, for which it has $PREPARE_SECONDS s"
  say "prepared in $((SECONDS - begun)) s"
  "$SELF" start 9>&- || return 1
  "$SELF" scenario 9>&- || { say "failed: tests/ops/containers.py"; return 1; }
  begun=$SECONDS
  "$SELF" down 9>&- || return 1
  trap - EXIT
  after=$(outside)
  [ "$before" = "$after" ] || { say "failed: left on the machine:"; diff <(echo "$before") <(echo "$after"); return 1; }
  say "removed in $((SECONDS - begun)) s: no container, volume, network, process, mount or group of processes is left"
}

case ${1:-} in
  prepare | start | scenario | down) "$1" ;;
  up) prepare; start ;;
  exec) shift; exec nsenter -n -p -t "$(cat "$ENGINE/net.pid")" "$@" ;;
  test)
    code=0
    (run_test) || code=$?
    [ $code != $CANNOT ] || [ -n "${LDPSTREAM_REQUIRE_CONTAINERS:-}" ] || code=0
    [ $code = 0 ] || exit 1 ;;
  *) sed -n '2,6s/^# \?//p' "$0"; exit 2 ;;
esac
